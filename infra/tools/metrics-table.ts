import { METRICS } from '../../lib/observability/metric-list.ts';
import { keepFile, table } from './generated-file.ts';

const rows = Object.entries(METRICS).map(([name, { kind, unit, attributes, meaning }]) => [
  `\`${name}\``,
  kind,
  unit,
  attributes,
  meaning,
]);

keepFile(
  'docs/metrics.md',
  `<!-- Generated from lib/observability/metric-list.ts: npm run generate -->

# Metrics

This page is for operators. The service exports metrics if \`SVC_OTEL_ENABLED\` is true and \`OTEL_METRICS_EXPORTER\` is
\`otlp\` (pushed) or \`prometheus\` (pulled). [Monitoring](../observability/README.md) describes both ways, the alarms and the
dashboard.

Names and units are OpenTelemetry's where OpenTelemetry defines them. Prometheus writes \`.\` as \`_\` and adds \`_total\` to
counters. Rates and numbers of requests come from the count of \`http.server.request.duration\`.

${table(['metric', 'kind', 'unit', 'attributes', 'meaning'], rows)}
`,
);
