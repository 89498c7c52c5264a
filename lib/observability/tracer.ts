import { trace } from '@opentelemetry/api';

/** The instrumentation scope of the service's spans and metrics. */
export const SCOPE = 'user-management-service';

export const tracer = trace.getTracer(SCOPE);
