import type { Variables } from './environment.ts';
import * as form from './setting-forms.ts';

/**
 * The values of OTEL_*, and the parts of those that are lists, but for words and numbers of a few characters and for the
 * names that OpenTelemetry gives to its parts.
 */
export function listTexts(given: Variables): readonly string[] {
  const values = Object.entries(given).flatMap(
    ([name, value]) => (/^OTEL_(?!PROPAGATORS$|TRACES_SAMPLER$)/.test(name) && value) || [],
  );
  const texts = values.flatMap((value) => [value, ...value.split(/[,=]/)]).filter(({ length }) => length > 5);
  return texts.toSorted((one, other) => other.length - one.length);
}

/**
 * How OpenTelemetry is used, and which of its variables are. A fleet may set them for other services: a variable that
 * nothing would read is not checked. Spans are printed if no receiver is named, unless OTEL_TRACES_EXPORTER says otherwise.
 */
export function readOtelUse(given: Variables) {
  const isEnabled = form.flag.safeParse(given.SVC_OTEL_ENABLED).data ?? given.SVC_ENV === 'production';
  const isOn = isEnabled && !/^true$/i.test(given.OTEL_SDK_DISABLED ?? '');
  const hasReceiver = given.OTEL_EXPORTER_OTLP_ENDPOINT || given.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT;
  const spans = given.OTEL_TRACES_EXPORTER ?? (hasReceiver ? 'otlp' : 'console');
  const metrics = given.OTEL_METRICS_EXPORTER;
  const pushed = [...(spans === 'otlp' ? ['TRACES_'] : []), ...(metrics === 'otlp' ? ['METRICS_'] : [])];
  const isUsed = (name: string) => {
    if (!name.startsWith('OTEL_')) return true;
    const [, signal, rest] = /^OTEL_EXPORTER_OTLP_(TRACES_|METRICS_|)(.+)$/.exec(name) ?? [];
    if (!isOn) return false;
    if (signal) return pushed.includes(signal);
    // The variable of a signal replaces the general one.
    if (rest) return pushed.some((one) => given[`OTEL_EXPORTER_OTLP_${one}${rest}`] === undefined);
    if (name.startsWith('OTEL_BSP_')) return spans === 'otlp';
    if (name.startsWith('OTEL_METRIC_EXPORT_')) return metrics === 'otlp';
    return !name.startsWith('OTEL_EXPORTER_PROMETHEUS_') || metrics === 'prometheus';
  };
  return { isOn, spans, isUsed };
}
