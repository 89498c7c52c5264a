import { beforeAll, expect, test } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import type { StatementKind } from '../../lib/postgres/index.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';

/** Further events of an operation for which a header or the query decides the kind. */
const MORE: Readonly<Record<string, readonly string[]>> = {
  createUser: ['createUser-key'],
  listUsers: ['listUsers-email'],
};

const cases = endpoints
  .filter(({ route }) => route.role !== 'public')
  .flatMap((endpoint) => {
    const { operationId } = endpoint.route;
    return [operationId, ...(MORE[operationId] ?? [])].map((name) => ({ name, endpoint }));
  });

let composition: Awaited<ReturnType<typeof startComposition>>;
let sent: StatementKind[];

beforeAll(async () => {
  composition = await startComposition();
  const { statements } = composition.service.database;
  const run = statements.run.bind(statements);
  statements.run = (text, values) => {
    sent.push(text.kind);
    return run(text, values);
  };
  return () => composition.stop();
});

test.each(cases)(
  '$name declares the kind of its first statement, which admission uses',
  async ({ name, endpoint }) => {
    sent = [];
    const { id } = await composition.createUser();
    sent = [];
    await composition.call(endpoint, name, { id });

    const { firstStatement } = endpoint.route;
    const event = await eventOf(name);
    expect(sent[0]).toBe(typeof firstStatement === 'function' ? firstStatement(event) : firstStatement);
  },
);
