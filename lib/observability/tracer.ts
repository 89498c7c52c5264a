import { type Span, trace } from '@opentelemetry/api';

/** The name of what makes our spans and metrics. */
export const SCOPE = 'user-management-service';

/** What makes our spans. */
export const tracer = trace.getTracer(SCOPE);

/** Attributes of our spans; numbers are whole, and not negative. */
export type PlainAttributes = Readonly<Record<string, string | number | boolean>>;

/** Gives a span that has no attributes yet all that it shall have. */
export type Describe = (span: Span, attributes: PlainAttributes) => void;

/**
 * Puts the attributes in place of the span's own, empty map, so that spans may share what is frozen. The SDK would look at
 * each, with a WeakSet of its own, and copy it: half of the 5 microseconds that the two spans of a request cost
 * before they are exported.
 */
export const describeAtOnce: Describe = (span, attributes) => {
  (span as { attributes?: PlainAttributes }).attributes = attributes;
};

/** Has the SDK take each, which cuts off what is beyond the limits that OTEL_* variables have set. */
export const describeWithinLimits: Describe = (span, attributes) => {
  span.setAttributes(attributes);
};
