import { type Attributes, context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Settings } from '../settings.ts';

type Server = Settings['postgres']['servers'][number];

const SQLSTATE = /^[0-9A-Z]{5}$/;

const tracer = trace.getTracer('user-management-service');

/** Runs statements, each within a span that names it and holds none of its values. */
export type WithinDatabaseSpan = <Result>(
  statement: { readonly sql: string; readonly summary: string },
  run: () => Promise<Result>,
) => Promise<Result>;

/**
 * Spans of statements at this database, of the server that is in use. Outside of a request, which has a span, there are
 * none.
 *
 * @see OpenTelemetry semantic conventions for database client spans, stable since 1.33
 */
export function databaseSpans(database: string, serverInUse: () => Server): WithinDatabaseSpan {
  const known = new Map<string, Attributes>();
  let server = serverInUse();

  function describe(sql: string, summary: string): Attributes {
    const [operation = '', collection = ''] = summary.split(' ');
    const attributes: Attributes = {
      'db.system.name': 'postgresql',
      'db.namespace': database,
      'db.operation.name': operation,
      'db.collection.name': collection,
      'db.query.summary': summary,
      'db.query.text': sql,
      'server.address': server.host,
      'server.port': server.port,
    };
    known.set(sql, attributes);
    return attributes;
  }

  return async ({ sql, summary }, run) => {
    if (!trace.getActiveSpan()?.isRecording()) return run();
    const current = serverInUse();
    if (server !== current) known.clear();
    server = current;
    const attributes = known.get(sql) ?? describe(sql, summary);
    const span = tracer.startSpan(summary, { kind: SpanKind.CLIENT, attributes });
    try {
      return await context.with(trace.setSpan(context.active(), span), run);
    } catch (fault) {
      const { code = '_OTHER' } = fault as { code?: string };
      if (SQLSTATE.test(code)) span.setAttribute('db.response.status_code', code);
      span.setAttribute('error.type', code).setStatus({ code: SpanStatusCode.ERROR });
      throw fault;
    } finally {
      span.end();
    }
  };
}
