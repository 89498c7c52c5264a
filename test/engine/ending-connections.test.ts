import { sql } from 'kysely';
import { beforeEach, expect, inject, onTestFinished, test } from 'vitest';
import type { StatementKind as Kind } from '../../lib/postgres/index.ts';
import type { Session } from '../../lib/postgres/sessions/session.ts';
import type { Variables } from '../../lib/settings/settings.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { openedDatabase } from '../stage/opened-database.ts';
import { errorResponse, messagesThrough } from '../stage/postgres-messages.ts';
import { addressOf, startProxy } from '../stage/proxy.ts';
import { prepare } from '../stage/statements.ts';

const database = openedDatabase('CREATE TABLE notes (id uuid, note text)');
const proxy = forAllTests(() => startProxy(inject('postgres')));

beforeEach(() => database.query('TRUNCATE notes'));

const ID = '00000000-0000-7000-8000-000000000001';
const kinds: readonly Kind[] = ['list', 'batched-read', 'batched-write', 'single'];

/** A database behind the proxy, and the sessions that it opened. */
function open(variables: Variables = {}) {
  const clients: Session[] = [];
  const opened = database.open({ ...addressOf(proxy), ...variables });
  const { hosts } = opened;
  const openSession = hosts.openSession.bind(hosts);
  hosts.openSession = async (config) => {
    const session = await openSession(config);
    clients.push(session);
    return session;
  };
  return { opened, clients };
}

/** How a session ends: with a message of PostgreSQL, or without one. */
const ENDS = {
  'PostgreSQL says so': {
    event: 'data',
    end: () =>
      database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`),
  },
  'the connection is closed': { event: 'end', end: async () => proxy.endAll() },
} as const;

const cases = kinds.flatMap((kind) =>
  (['PostgreSQL says so', 'the connection is closed'] as const).flatMap((how) =>
    (['prependOnceListener', 'once'] as const).map((listen) => ({
      kind,
      how,
      listen,
      moment: listen === 'once' ? 'after' : 'in the pass of the event loop in which',
    })),
  ),
);

test.each(cases)(
  'a statement that is not sent $moment $how is sent to another session: $kind',
  async ({ kind, how, listen }) => {
    const { opened, clients } = open();
    const insert = prepare<{ id: readonly [string] }, { id: string }>(
      opened.statements,
      'INSERT notes',
      ({ id }) => sql`insert into notes select id, 'once' from unnest(${id}::uuid[]) as id returning id`,
      kind,
    );
    const write = () => insert({ id: [ID] });
    await write();
    const [{ connection }] = clients as [Session];
    const response = new Promise((resolve) => {
      connection.stream[listen](ENDS[how].event, () => resolve(write().catch((fault) => fault)));
    });
    await ENDS[how].end();

    expect(await response).toEqual([{ id: ID }]);
    expect(await database.query('SELECT note FROM notes')).toEqual([{ note: 'once' }, { note: 'once' }]);
    await opened.close(1);
  },
);

test.each([
  ['57P05', 'postgresql', 'is sent again'],
  ['57P05', 'distributed', 'fails'],
  ['57P01', 'postgresql', 'fails'],
  ['08P01', 'postgresql', 'fails'],
])('a write whose first response is %s of %s %s', async (code, engine, outcome) => {
  let isEnding = false;
  proxy.answersThrough(() =>
    messagesThrough((_type, message) => {
      if (!isEnding) return message;
      isEnding = false;
      setImmediate(() => proxy.endAll());
      return errorResponse(code);
    }),
  );
  onTestFinished(() => proxy.pass());
  const { opened } = open({ SVC_POSTGRES_ENGINE: engine });
  onTestFinished(() => opened.close(1));
  const insert = prepare<{ note: string }, { note: string }>(
    opened.statements,
    'INSERT notes',
    ({ note }) => sql`insert into notes (note) values (${note}) returning note`,
  );
  await insert({ note: 'before' });
  isEnding = true;
  const sent = insert({ note: 'x' });

  if (outcome === 'is sent again') expect(await sent).toEqual([{ note: 'x' }]);
  else await expect(sent).rejects.toMatchObject({ status: 503 });
});
