import type { databaseSpans } from './database-span.ts';
import type { WithinServerSpan } from './server-span.ts';

/** What tracing adds to requests, statements and log lines. Where it is off there is none of it, and nothing is loaded. */
export type Tracing = {
  readonly withinServerSpan: WithinServerSpan;
  readonly databaseSpans: ReturnType<typeof databaseSpans>;
  readonly activeSpan: ActiveSpan;
};

/** The ids of the span that is active at this moment, as log lines carry them. */
export type ActiveSpan = () => { readonly trace_id: string; readonly span_id: string } | undefined;
