import { SpanKind, SpanStatusCode } from '@opentelemetry/api';
import { ExportResultCode, hrTimeToTimeStamp } from '@opentelemetry/core';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import type { WriteLine } from './line-writer.ts';

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
