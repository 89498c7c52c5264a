import { type Attributes, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import type { PostgresServer } from '../settings/settings.ts';
import { tracer } from './tracer.ts';

const SQLSTATE = /^[0-9A-Z]{5}$/;

type DescribedStatement = { readonly sql: string; readonly summary: string };

/**
 * The spans of statements at one database, with the server in use. They exist only within a request whose span is
 * recorded.
 *
 * @see OpenTelemetry semantic conventions for database client spans, stable since 1.33
 */
export class DatabaseSpans {
  readonly #database: string;
  readonly #serverInUse: () => PostgresServer;

  constructor(database: string, serverInUse: () => PostgresServer) {
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
      span.setAttributes(attributes);
      return result;
    } catch (fault) {
      const { code = '_OTHER' } = fault as { code?: string };
      const status = SQLSTATE.test(code) && { 'db.response.status_code': code };
      span.setAttributes({ ...attributes, ...status, 'error.type': code });
      span.setStatus({ code: SpanStatusCode.ERROR });
      throw fault;
    } finally {
      span.end();
    }
  }

  #attributesOf({ sql, summary }: DescribedStatement): Attributes {
    const { host, port } = this.#serverInUse();
    const [operation, collection] = summary.split(' ');
    return {
      'db.system.name': 'postgresql',
      'db.namespace': this.#database,
      'db.operation.name': operation,
      'db.collection.name': collection,
      'db.query.summary': summary,
      'db.query.text': sql,
      'server.address': host,
      'server.port': port,
    };
  }
}
