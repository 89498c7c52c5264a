import { sql } from 'kysely';
import { beforeEach, describe, expect, inject, onTestFinished, test } from 'vitest';
import type { StatementKind as Kind } from '../../lib/postgres/index.ts';
import type { Session } from '../../lib/postgres/sessions/session.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { openedDatabase } from '../stage/opened-database.ts';
import { errorResponse, messagesThrough } from '../stage/postgres-messages.ts';
import { addressOf, startProxy } from '../stage/proxy.ts';
import { prepare } from '../stage/statements.ts';

const database = openedDatabase('CREATE TABLE notes (id uuid, note text)');
const proxy = forAllTests(() => startProxy(inject('postgres')));

beforeEach(() => database.query('TRUNCATE notes'));

const ID = '00000000-0000-7000-8000-000000000001';

/** A database behind the proxy, until the test ends. */
function open(variables: Variables = {}) {
  const opened = database.open({ ...addressOf(proxy), ...variables });
  onTestFinished(() => opened.close(1));
  return opened;
}

/** How a session ends: with a message of PostgreSQL, or without one. */
const ENDS = [
  {
    how: 'PostgreSQL says so',
    event: 'data',
    end: () =>
      database.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
        WHERE datname = current_database() AND pid <> pg_backend_pid()`),
  },
  { how: 'the connection is closed', event: 'end', end: async () => proxy.endAll() },
] as const;

describe.each<Kind>(['list', 'batched-read', 'batched-write', 'own-session'])(
  'a statement of the kind %s',
  (kind) => {
    describe.each(ENDS)('that is not sent when $how', ({ event, end }) => {
      test.each([
        ['in the same pass of the event loop', 'prependOnceListener'],
        ['after it', 'once'],
      ] as const)('%s is sent to another session', async (_moment, listen) => {
        const opened = open();
        const sessions: Session[] = [];
        const openSession = opened.hosts.openSession.bind(opened.hosts);
        opened.hosts.openSession = async (parameters) => {
          const session = await openSession(parameters);
          sessions.push(session);
          return session;
        };
        const insert = prepare<{ id: readonly [string] }, { id: string }>(
          opened.statements,
          'INSERT notes',
          ({ id }) => sql`insert into notes select id, 'once' from unnest(${id}::uuid[]) as id returning id`,
          kind,
        );
        const write = () => insert({ id: [ID] });
        await write();
        const response = new Promise((resolve) => {
          sessions[0]?.connection.stream[listen](event, () => resolve(write().catch((fault) => fault)));
        });
        await end();

        expect(await response).toEqual([{ id: ID }]);
        expect(await database.query('SELECT note FROM notes')).toEqual([{ note: 'once' }, { note: 'once' }]);
      });
    });
  },
);

/** Resolves with a function after which the next response is this error, and the connection ends. */
function endingWith(error: Buffer): () => void {
  let isEnding = false;
  proxy.answersThrough(() =>
    messagesThrough((_type, message) => {
      if (!isEnding) return message;
      isEnding = false;
      setImmediate(() => proxy.endAll());
      return error;
    }),
  );
  onTestFinished(() => proxy.pass());
  return () => {
    isEnding = true;
  };
}

test.each([
  ['57P05', 'postgresql', 'is sent again'],
  ['57P05', 'distributed', 'fails'],
  ['57P01', 'postgresql', 'fails'],
  ['08P01', 'postgresql', 'fails'],
])('a write whose first response is %s of %s %s', async (code, engine, outcome) => {
  const end = endingWith(errorResponse(code));
  const { statements } = open({ SVC_POSTGRES_ENGINE: engine });
  const insert = prepare<{ note: string }, { note: string }>(
    statements,
    'INSERT notes',
    ({ note }) => sql`insert into notes (note) values (${note}) returning note`,
  );
  await insert({ note: 'before' });
  end();
  const sent = insert({ note: 'x' });

  if (outcome === 'is sent again') expect(await sent).toEqual([{ note: 'x' }]);
  else await expect(sent).rejects.toMatchObject({ status: 503 });
});

test.each([
  ['08P01', 'client_idle_timeout', { SVC_POSTGRES_POOLER: 'transaction' }],
  ['57P05', 'terminating connection due to idle-session timeout', { SVC_POSTGRES_ENGINE: 'distributed' }],
  ['57P01', 'timeout', {}],
])('a read whose first response is %s, "%s", is sent again', async (code, message, variables) => {
  const end = endingWith(errorResponse(code, message));
  const { statements } = open(variables);
  const read = prepare<Record<string, never>, object>(
    statements,
    'SELECT',
    () => sql`select 1 as one`,
    'list',
  );
  await read({});
  end();

  expect(await read({})).toHaveLength(1);
});
