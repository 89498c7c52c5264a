import type { databaseSpans } from './database-span.ts';
import type { WithinServerSpan } from './server-span.ts';

/**
 * The parts of tracing in requests, statements and log lines. If tracing is off, there are none, and nothing is loaded.
 */
export type Tracing = {
  readonly withinServerSpan: WithinServerSpan;
  readonly databaseSpans: ReturnType<typeof databaseSpans>;
  readonly activeSpan: ActiveSpan;
};

/** The ids of the span that is active at this moment, as in log lines. */
export type ActiveSpan = () => { readonly trace_id: string; readonly span_id: string } | undefined;
