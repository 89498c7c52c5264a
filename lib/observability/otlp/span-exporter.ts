import { OTLPExporterBase } from '@opentelemetry/otlp-exporter-base';
import {
  convertLegacyHttpOptions,
  createOtlpHttpExportDelegate,
} from '@opentelemetry/otlp-exporter-base/node-http';
import { ProtobufTraceSerializer, TraceExporterMetricsHelper } from '@opentelemetry/otlp-transformer';
import type { ReadableSpan, SpanExporter } from '@opentelemetry/sdk-trace';
import { spanRequest } from './span-request.ts';

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
