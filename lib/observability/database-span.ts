import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Settings } from '../settings/settings.ts';
import { type Describe, type PlainAttributes, tracer } from './tracer.ts';

type Server = Settings['postgres']['servers'][number];

const SQLSTATE = /^[0-9A-Z]{5}$/;

/** Runs statements, each within a span with its name and without its values. */
export type WithinDatabaseSpan = <Result>(
  statement: { readonly sql: string; readonly summary: string },
  run: () => Promise<Result>,
) => Promise<Result>;

/**
 * Creates spans of statements at a database, with the server in use. They exist only within a request whose span is
 * recorded.
 *
 * @see OpenTelemetry semantic conventions for database client spans, stable since 1.33
 */
export function databaseSpans(describe: Describe) {
  return (database: string, serverInUse: () => Server): WithinDatabaseSpan => {
    const known = new Map<string, PlainAttributes>();
    let server = serverInUse();

    return async ({ sql, summary }, run) => {
      if (!trace.getActiveSpan()?.isRecording()) return run();
      const attributes = attributesOf(sql, summary);
      const span = tracer.startSpan(summary, { kind: SpanKind.CLIENT });
      try {
        const result = await run();
        describe(span, attributes);
        return result;
      } catch (fault) {
        const { code = '_OTHER' } = fault as { code?: string };
        const status = SQLSTATE.test(code) && { 'db.response.status_code': code };
        describe(span, { ...attributes, ...status, 'error.type': code });
        span.setStatus({ code: SpanStatusCode.ERROR });
        throw fault;
      } finally {
        span.end();
      }
    };

    /** The attributes of a statement at the server in use. They are frozen, so that they are encoded once. */
    function attributesOf(sql: string, summary: string): PlainAttributes {
      const current = serverInUse();
      if (server !== current) known.clear();
      server = current;
      const found = known.get(sql);
      if (found) return found;
      const [operation = '', collection = ''] = summary.split(' ');
      const attributes = Object.freeze({
        'db.system.name': 'postgresql',
        'db.namespace': database,
        'db.operation.name': operation,
        'db.collection.name': collection,
        'db.query.summary': summary,
        'db.query.text': sql,
        'server.address': server.host,
        'server.port': server.port,
      });
      known.set(sql, attributes);
      return attributes;
    }
  };
}
