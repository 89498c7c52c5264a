import { METRICS } from '../../lib/observability/metric-list.ts';

/** The name of a metric of the service. */
export type MetricName = keyof typeof METRICS;

/** The instrumentation scope of a metric. Other services have metrics with the same names. */
const scopeOf = (name: MetricName) =>
  name === 'http.client.request.duration'
    ? '@opentelemetry/instrumentation-undici'
    : 'user-management-service';

const SUFFIX = { gauge: '', 'up-down counter': '', counter: '_total', histogram: '_count' } as const;

/** The series of a metric, of all instances, with Prometheus' name; the count of a histogram. `labels` select some. */
export function series(name: MetricName, ...labels: readonly string[]): string {
  return `${prometheusName(name)}{${[`otel_scope_name="${scopeOf(name)}"`, ...labels].join(',')}}`;
}

/** The buckets of a histogram. */
export function buckets(name: MetricName, ...labels: readonly string[]): string {
  return series(name, ...labels).replace('_count{', '_bucket{');
}

/** The name that `@opentelemetry/exporter-prometheus` writes. */
function prometheusName(name: MetricName): string {
  return name.replaceAll('.', '_') + SUFFIX[METRICS[name].kind];
}
