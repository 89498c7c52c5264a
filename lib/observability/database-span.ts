import { SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { Settings } from '../settings/settings.ts';
import { type Describe, type PlainAttributes, tracer } from './tracer.ts';

/** A server of PostgreSQL. */
export type Server = Settings['postgres']['servers'][number];

const SQLSTATE = /^[0-9A-Z]{5}$/;

type DescribedStatement = { readonly sql: string; readonly summary: string };

/**
 * The spans of statements at one database, with the server in use. They exist only within a request whose span is
 * recorded.
 *
 * @see OpenTelemetry semantic conventions for database client spans, stable since 1.33
 */
export class DatabaseSpans {
  readonly #describe: Describe;
  readonly #database: string;
  readonly #serverInUse: () => Server;
  readonly #attributes = new Map<string, PlainAttributes>();
  #server: Server | undefined;

  constructor(describe: Describe, database: string, serverInUse: () => Server) {
    this.#describe = describe;
    this.#database = database;
    this.#serverInUse = serverInUse;
  }

  /** Runs a statement within a span with its name and without its values. */
  async within<Result>(statement: DescribedStatement, run: () => Promise<Result>): Promise<Result> {
    if (!trace.getActiveSpan()?.isRecording()) return run();
    const attributes = this.#attributesOf(statement);
    const span = tracer.startSpan(statement.summary, { kind: SpanKind.CLIENT });
    try {
      const result = await run();
      this.#describe(span, attributes);
      return result;
    } catch (fault) {
      const { code = '_OTHER' } = fault as { code?: string };
      const status = SQLSTATE.test(code) && { 'db.response.status_code': code };
      this.#describe(span, { ...attributes, ...status, 'error.type': code });
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw fault;
    } finally {
      span.end();
    }
  }

  /** The attributes of a statement at the server in use. They are frozen, so that they are encoded once. */
  #attributesOf({ sql, summary }: DescribedStatement): PlainAttributes {
    const server = this.#serverInUse();
    if (server !== this.#server) this.#attributes.clear();
    this.#server = server;
    const found = this.#attributes.get(sql);
    if (found) return found;
    const [operation = '', collection = ''] = summary.split(' ');
    const attributes = Object.freeze({
      'db.system.name': 'postgresql',
      'db.namespace': this.#database,
      'db.operation.name': operation,
      'db.collection.name': collection,
      'db.query.summary': summary,
      'db.query.text': sql,
      'server.address': server.host,
      'server.port': server.port,
    });
    this.#attributes.set(sql, attributes);
    return attributes;
  }
}
