import { type Span, trace } from '@opentelemetry/api';

/** The instrumentation scope of the service's spans and metrics. */
export const SCOPE = 'user-management-service';

/** The tracer of the service's spans. */
export const tracer = trace.getTracer(SCOPE);

/** Attributes of the service's spans. Numbers are non-negative integers. */
export type PlainAttributes = Readonly<Record<string, string | number | boolean>>;

/** Sets all attributes of a span that has none yet. */
export type Describe = (span: Span, attributes: PlainAttributes) => void;

/**
 * Replaces the span's own, empty map by the attributes, so that spans can share frozen ones. The SDK would check each
 * attribute, with a WeakSet, and copy it: half of the 5 microseconds that the two spans of a request cost before their
 * export.
 */
export const describeAtOnce: Describe = (span, attributes) => {
  (span as { attributes?: PlainAttributes }).attributes = attributes;
};
