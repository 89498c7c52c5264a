import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { ExportResultCode, hrTimeToTimeStamp } from '@opentelemetry/core';
import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base';
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from '@opentelemetry/otlp-exporter-base/node-http';
import { ProtobufTraceSerializer, TraceExporterMetricsHelper } from '@opentelemetry/otlp-transformer';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { WriteLine } from './line-writer.ts';
import { attributesField, delimited, spanMessage, text, varint } from './span-message.ts';
import { SCOPE } from './tracer.ts';

/**
 * The SDK's exporter of spans as protobuf over HTTP, configured by the OTEL_* variables, with this service's encoding
 * of spans.
 */
export function createSpanExporter(): SpanExporter {
  const headers = { 'Content-Type': 'application/x-protobuf' };
  const serializer = { ...ProtobufTraceSerializer, serializeRequest: spanRequest };
  return new OTLPExporterBase<ReadableSpan[]>(
    createOtlpHttpExportDelegate(
      convertLegacyHttpOptions({}, 'TRACES', 'v1/traces', headers),
      serializer,
      'otlp_http_span_exporter',
      TraceExporterMetricsHelper,
      undefined,
    ),
  );
}

/**
 * `ExportTraceServiceRequest` of spans. The service's own spans, which are nearly all, are encoded here. The SDK
 * encodes those of instrumentations, which may contain anything. Two such requests in sequence are one request
 * (protobuf, "Last One Wins": repeated fields are joined).
 */
export function spanRequest(spans: readonly ReadableSpan[]): Uint8Array | undefined {
  const ours = spans.filter(isOurs);
  if (ours.length === spans.length) return requestOf(ours);
  const others = ProtobufTraceSerializer.serializeRequest(spans.filter((span) => !isOurs(span)));
  return others && Buffer.concat([requestOf(ours), others]);
}

function isOurs({ instrumentationScope }: ReadableSpan): boolean {
  return instrumentationScope.name === SCOPE;
}

/** All spans have one resource and one scope. Joining their messages first would copy each of them twice more. */
function requestOf(spans: readonly ReadableSpan[]): Buffer {
  const [first] = spans;
  if (!first) return Buffer.alloc(0);
  const messages = spans.map(spanMessage);
  const size = messages.reduce((sum, message) => sum + message.length, 0);

  const { attributes, schemaUrl } = first.resource;
  const scope = delimited(1, text(1, SCOPE));
  const scopeSpans = `\x12${varint(scope.length + size)}${scope}`;
  const resource =
    delimited(1, attributesField(1, attributes)) + (schemaUrl === undefined ? '' : text(3, schemaUrl));
  const head = `\x0a${varint(resource.length + scopeSpans.length + size)}${resource}${scopeSpans}`;

  const buffer = Buffer.allocUnsafeSlow(head.length + size);
  let at = buffer.write(head, 'latin1');
  for (const message of messages) at += buffer.write(message, at, 'latin1');
  return buffer;
}

/** Prints each span as one JSON object on a line of its own. */
export function spanLines(write: WriteLine): SpanExporter {
  return {
    export(spans, done) {
      for (const span of spans) write(JSON.stringify(lineOf(span)));
      done({ code: ExportResultCode.SUCCESS });
    },
    shutdown: async () => {},
  };
}

function lineOf(span: ReadableSpan) {
  const { traceId, spanId } = span.spanContext();
  return {
    name: span.name,
    kind: SpanKind[span.kind],
    trace_id: traceId,
    span_id: spanId,
    parent_span_id: span.parentSpanContext?.spanId,
    start_time: hrTimeToTimeStamp(span.startTime),
    end_time: hrTimeToTimeStamp(span.endTime),
    status: SpanStatusCode[span.status.code],
    attributes: span.attributes,
    resource: span.resource.attributes,
  };
}
