import { createServer } from 'node:http';
import { PrometheusExporter } from '@opentelemetry/exporter-prometheus';
import type { Settings } from '../settings/settings.ts';
import type { EventLog } from './event-log.ts';
import { redactedCause } from './redaction.ts';

/** Serves `GET /metrics` to Prometheus. The exporter's own server answers every method. */
export function listenForPrometheus({ host, sdk }: Settings, log: EventLog): PrometheusExporter {
  const exporter = new PrometheusExporter({ preventServerStart: true });
  createServer((request, response) => {
    if (request.method !== 'GET' && request.method !== 'HEAD')
      response.writeHead(405, { Allow: 'GET, HEAD' }).end();
    else if (request.url?.split('?', 1)[0] === '/metrics')
      exporter.getMetricsRequestHandler(request, response);
    else response.writeHead(404).end();
  })
    .on('error', (fault) => log.error('metrics_not_served', { cause: redactedCause(fault) }))
    .listen(sdk.prometheusPort ?? 9464, sdk.prometheusHost ?? host)
    .unref();
  return exporter;
}
