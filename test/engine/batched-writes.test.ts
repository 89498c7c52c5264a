import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { withinRequest } from '../../lib/http/request-scope.ts';
import { UserCreate } from '../../lib/users/user.ts';
import { startComposition } from '../stage/composition.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { openedDatabase } from '../stage/opened-database.ts';
import { outcomesOf, prepare } from '../stage/statements.ts';
import { until } from '../stage/until.ts';

const opened = openedDatabase(`CREATE TABLE notes
  (id uuid PRIMARY KEY, note text CHECK (note <> 'bad'), place bigserial, transaction xid8 DEFAULT pg_current_xact_id())`);

beforeEach(() => opened.query('TRUNCATE notes'));

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const idOf = (number: number) => `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;
const unavailable = expect.objectContaining({ code: 'service_unavailable_error' });

/** A function that inserts a note with a statement of this many seconds. */
function writingNotes(seconds = 0) {
  const write = prepare<{ id: readonly [string]; note: readonly [string] }, { id: string; note: string }>(
    opened.statements,
    'INSERT notes',
    (given) => sql`with slept as materialized (select pg_sleep(${sql.lit(seconds)}))
      insert into notes (id, note) select given.id, given.note
      from slept, unnest(${given.id}::uuid[], ${given.note}::text[]) as given (id, note)
      returning id, note`,
    'batched-write',
  );
  return (number: number, note: string) => write({ id: [idOf(number)], note: [note] });
}

const written = (number: number, note: string) => [{ id: idOf(number), note }];

describe('batched writes', () => {
  test('are one statement if they arrive together, and each has its own result', async () => {
    const write = writingNotes();
    const responses = await Promise.all(numbers(50).map((number) => write(number, `note ${number}`)));
    const [{ statements } = {}] = await opened.query(
      'SELECT count(DISTINCT transaction)::int AS statements FROM notes',
    );

    expect(responses).toEqual(numbers(50).map((number) => written(number, `note ${number}`)));
    expect(statements).toBe(1);
  });

  test('are carried out in the order of their ids, so that two statements never wait for each other', async () => {
    const write = writingNotes();
    await Promise.all([7, 3, 9, 1].map((number) => write(number, 'note')));
    const rows = await opened.query('SELECT id FROM notes ORDER BY place');

    expect(rows).toEqual([1, 3, 7, 9].map((number) => ({ id: idOf(number) })));
  });

  test('that fail together are sent in parts and one by one, and only those with a fault fail', async () => {
    const write = writingNotes();
    const notes = numbers(50).map((number) => (number % 20 === 4 ? 'bad' : `note ${number}`));
    const ended = await outcomesOf(notes.map((note, number) => write(number, note)));

    expect(ended).toEqual(
      notes.map((note, number) =>
        note === 'bad' ? expect.objectContaining({ code: '23514' }) : written(number, note),
      ),
    );
  });

  test('are 503 if their connection dies, and are never sent again', async () => {
    const write = writingNotes(0.3);
    const ended = outcomesOf(numbers(50).map((number) => write(number, 'once')));
    await until('it runs', async () => {
      const rows = await opened.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND state = 'active' AND query LIKE '%slept%'`,
      );
      return rows.length > 0;
    });

    expect(await ended).toEqual(numbers(50).map(() => unavailable));
    expect(await opened.query('SELECT FROM notes')).toEqual([]);
    expect(await writingNotes()(1, 'again')).toEqual(written(1, 'again'));
  });

  test('are carried out for the others after the request of one reached its limit', async () => {
    const write = writingNotes(0.4);
    const givenUp = withinRequest({ requestId: 'r', answeredBy: performance.now() + 100 }, () =>
      write(1, 'given up'),
    );
    const other = write(2, 'waited for');

    expect(await outcomesOf([givenUp])).toEqual([unavailable]);
    expect(await other).toEqual(written(2, 'waited for'));
  });
});

test('creates that arrive together are stored in the order of their emails, so that two statements never wait for each other', async () => {
  const { service, database } = await forThisTest(startComposition);
  const create = (name: string) =>
    service.users.create(UserCreate.parse({ email: `${name}@example.com` }), {
      actor: 'a',
      request_id: 'r',
    });
  await Promise.all(['m', 'C', 'z', 'a'].map(create));
  const rows = await database.query('SELECT email FROM users ORDER BY ctid');

  expect(rows.map(({ email }) => String(email)[0])).toEqual(['a', 'C', 'm', 'z']);
});
