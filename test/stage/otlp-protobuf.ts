import protobuf from 'protobufjs';

/** @see https://github.com/open-telemetry/opentelemetry-proto */
const { root } = protobuf.parse(`
  syntax = "proto3";
  message AnyValue {
    oneof value {
      string string_value = 1;
      bool bool_value = 2;
      int64 int_value = 3;
      double double_value = 4;
      ArrayValue array_value = 5;
    }
  }
  message ArrayValue { repeated AnyValue values = 1; }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message Event { fixed64 time_unix_nano = 1; string name = 2; repeated KeyValue attributes = 3; }
  message Status { string message = 2; int32 code = 3; }
  message Span {
    bytes trace_id = 1;
    bytes span_id = 2;
    string trace_state = 3;
    bytes parent_span_id = 4;
    string name = 5;
    int32 kind = 6;
    fixed64 start_time_unix_nano = 7;
    fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9;
    uint32 dropped_attributes_count = 10;
    repeated Event events = 11;
    Status status = 15;
    fixed32 flags = 16;
  }
  message Scope { string name = 1; string version = 2; }
  message ScopeSpans { Scope scope = 1; repeated Span spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3; }
  message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
`);
const TraceRequest = root.lookupType('ExportTraceServiceRequest');

/**
 * An ExportTraceServiceRequest in the form of OTLP/JSON. A missing text, number or list has its default value.
 *
 * @throws if the bytes are not such a message
 */
export function decodeTraceRequest(bytes: Uint8Array): Record<string, unknown> {
  const decoded = TraceRequest.toObject(TraceRequest.decode(bytes), {
    longs: String,
    bytes: Array,
    defaults: true,
  });
  return JSON.parse(
    JSON.stringify(decoded, (name, value) =>
      /^(traceId|spanId|parentSpanId)$/.test(name) ? Buffer.from(value).toString('hex') : value,
    ),
  );
}
