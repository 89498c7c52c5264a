import { type Attributes, context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Settings } from '../settings.ts';

const SQLSTATE = /^[0-9A-Z]{5}$/;

const tracer = trace.getTracer('user-management-service');

/** Runs statements, each within a span that names it and holds none of its values. */
export type WithinDatabaseSpan = <Result>(sql: string, run: () => Promise<Result>) => Promise<Result>;

/**
 * Spans of statements at this database. Outside of a request, which has a span, there are none.
 *
 * @see OpenTelemetry semantic conventions for database client spans, stable since 1.33
 */
export function databaseSpans({ host, port, database }: Settings['postgres']): WithinDatabaseSpan {
  const known = new Map<string, { name: string; attributes: Attributes }>();

  function describe(sql: string) {
    const [operation = '', collection = ''] = operationOf(sql);
    const name = `${operation} ${collection}`.trim();
    const attributes: Attributes = {
      'db.system.name': 'postgresql',
      'db.namespace': database,
      'db.operation.name': operation,
      'db.collection.name': collection,
      'db.query.summary': name,
      'db.query.text': sql,
      'server.address': host,
      'server.port': port,
    };
    known.set(sql, { name, attributes });
    return { name, attributes };
  }

  return async (sql, run) => {
    if (!trace.getActiveSpan()?.isRecording()) return run();
    const { name, attributes } = known.get(sql) ?? describe(sql);
    const span = tracer.startSpan(name, { kind: SpanKind.CLIENT, attributes });
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

/** Our statements are few and of one form: the operation first, and one table in double quotes. */
function operationOf(sql: string): readonly string[] {
  const [operation = ''] = sql.split(' ', 1);
  const [, table = ''] = /(?:from|into|update) "(\w+)"/.exec(sql) ?? [];
  return [operation.toUpperCase(), table];
}
