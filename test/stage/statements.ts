import type { CompiledQuery, RawBuilder } from 'kysely';
import type { StatementKind } from '../../lib/postgres/sessions/statement-text.ts';
import { Statements, type Values } from '../../lib/postgres/statements.ts';
import { readSettings } from '../../lib/settings/settings.ts';

/** The text and the values of a statement as it is sent. */
export type Statement = Pick<CompiledQuery, 'sql' | 'parameters'>;

/** A function that carries out statements instead of the engine. */
export function statementsRunBy(run: Statements['run']): Statements {
  const { postgres } = readSettings({
    SVC_OAUTH_ISSUER: 'https://issuer.test',
    SVC_OAUTH_JWKS_URI: 'https://issuer.test/jwks',
    SVC_OAUTH_AUDIENCE: 'users',
    SVC_POSTGRES_HOST: '127.0.0.1',
    SVC_POSTGRES_PASSWORD: 'secret',
  });
  return Object.assign(new Statements(postgres, { executors: {} as never, onReadOnly: () => {} }), {
    run,
  });
}

/** The only statement that a function sends. */
export async function statementSentBy(
  send: (statements: Statements) => Promise<unknown>,
): Promise<Statement> {
  const sent: Statement[] = [];
  await send(
    statementsRunBy(async (text, values) => {
      sent.push({ sql: text.sql, parameters: values });
      return [];
    }),
  );
  if (sent.length !== 1) throw new Error(`${sent.length} statements were sent`);
  return sent[0] as Statement;
}

type Run<Given, Row> = (values: Given) => Promise<readonly Row[]>;

/** A statement of any kind, for the tests of the engine. Batched statements take lists of one value. */
export function prepare<Given extends Values, Row>(
  statements: Statements,
  summary: string,
  write: (given: Given) => RawBuilder<unknown>,
  kind: StatementKind = 'own-session',
): Run<Given, Row> {
  const key = kind === 'batched-read' || kind === 'batched-write' ? 'id' : undefined;
  const isRead = summary.startsWith('SELECT');
  return statements.prepare<Given, Row>({ summary, kind, isRead, ...(key && { key }) }, write).run;
}

/** The outcome of each: its result, or the problem or fault of its refusal. */
export async function outcomesOf(responses: readonly Promise<unknown>[]): Promise<readonly unknown[]> {
  const settled = await Promise.allSettled(responses);
  return settled.map((end) => (end.status === 'fulfilled' ? end.value : end.reason));
}
