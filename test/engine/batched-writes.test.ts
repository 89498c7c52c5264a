import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { withinRequest } from '../../lib/http/request-scope.ts';
import { hold } from '../stage/locks.ts';
import { openedDatabase } from '../stage/opened-database.ts';
import { outcomesOf, prepare } from '../stage/statements.ts';
import { until } from '../stage/until.ts';

const opened = openedDatabase(`CREATE TABLE notes
  (id uuid PRIMARY KEY, note text CHECK (note <> 'bad'), writes int DEFAULT 1, place bigserial, transaction xid8 DEFAULT pg_current_xact_id())`);

beforeEach(() => opened.query('TRUNCATE notes'));

const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const idOf = (number: number) => `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;
const unavailable = expect.objectContaining({ code: 'service_unavailable_error' });

/** Appends to the note of an id, or creates it. Takes the given number of seconds. */
function writingNotes(seconds = 0) {
  const write = prepare<{ id: readonly [string]; note: readonly [string] }, { id: string; note: string }>(
    opened.statements,
    'INSERT notes',
    (given) => sql`with slept as materialized (select pg_sleep(${sql.lit(seconds)}))
      insert into notes (id, note) select given.id, given.note
      from slept, unnest(${given.id}::uuid[], ${given.note}::text[]) as given (id, note)
      on conflict (id) do update
        set note = notes.note || excluded.note, writes = notes.writes + 1, transaction = pg_current_xact_id()
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

  test('of one id are carried out one after another', async () => {
    const write = writingNotes();
    const responses = await Promise.all(['a', 'b', 'c', 'd'].map((letter) => write(1, letter)));
    const [{ note, writes } = {}] = await opened.query('SELECT note, writes FROM notes');

    // A write that takes longer than 5 ms may be overtaken.
    const inOrder = responses.toSorted(
      ([one], [other]) => (one?.note.length ?? 0) - (other?.note.length ?? 0),
    );
    expect(inOrder).toEqual([1, 2, 3, 4].map((length) => written(1, String(note).slice(0, length))));
    expect(writes).toBe(4);
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

  test('do not wait for a write that waits for a lock, which follows when it has the lock', async () => {
    const write = writingNotes();
    await write(0, 'before');
    const other = await hold(opened.database, "UPDATE notes SET note = 'meanwhile'");
    const waiting = write(0, ', after');
    const others = await Promise.all(numbers(40).map((number) => write(number + 1, 'free')));
    const later = await Promise.all(numbers(40).map((number) => write(number + 50, 'free')));
    await other.commit();

    expect(others).toEqual(numbers(40).map((number) => written(number + 1, 'free')));
    expect(later).toEqual(numbers(40).map((number) => written(number + 50, 'free')));
    expect(await waiting).toEqual(written(0, 'meanwhile, after'));
  });

  test('overtake a late statement', async () => {
    const [slow, write] = [writingNotes(0.3), writingNotes()];
    const ended: string[] = [];
    const first = slow(0, 'slow').then(() => ended.push('first'));
    await until('it runs', async () => {
      const running = await opened.query(
        "SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%slept%0.3%' AND pid <> pg_backend_pid()",
      );
      return running.length > 0;
    });
    const second = slow(1, 'slow').then(() => ended.push('second'));
    const others = numbers(20).map((number) => write(number + 2, 'free').then(() => ended.push('other')));
    await Promise.all([first, second, ...others]);

    expect(ended.slice(0, 20)).toEqual(others.map(() => 'other'));
    // In transactions of their own. The second one began before the first one ended.
    const [{ apart } = {}] = await opened.query(
      `SELECT count(DISTINCT transaction)::int AS apart FROM notes WHERE note = 'slow'`,
    );
    expect(apart).toBe(2);
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

  test('are sent in parts without a write whose request reached its limit', async () => {
    const write = writingNotes();
    await write(0, 'before');
    const other = await hold(opened.database, "UPDATE notes SET note = 'meanwhile'");
    const waiting = write(0, ', after');
    // The wait for the lock takes longer.
    const givenUp = withinRequest({ requestId: 'r', answeredBy: performance.now() + 10 }, () =>
      write(1, 'given up'),
    );
    const ended = outcomesOf([givenUp, write(2, 'free')]);

    expect(await ended).toEqual([unavailable, written(2, 'free')]);
    await other.commit();
    expect(await waiting).toEqual(written(0, 'meanwhile, after'));
    expect(await opened.query(`SELECT FROM notes WHERE id = '${idOf(1)}'`)).toEqual([]);
  });

  test('that fail together are 503 if the time limit leaves no time to find the faulty one', async () => {
    // The fault arrives just after the time limit, and usually before the requests are refused.
    const write = writingNotes(0.11);
    const rounds = numbers(20).map(async (round) => {
      await sleep(round * 7);
      const [, other] = await withinRequest({ requestId: 'r', answeredBy: performance.now() + 105 }, () =>
        outcomesOf([write(2 * round, 'bad'), write(2 * round + 1, 'good')]),
      );
      return other;
    });

    expect(await Promise.all(rounds)).toEqual(rounds.map(() => unavailable));
  });

  test('that a transaction conflict has rolled back are sent again', async () => {
    await opened.query(`CREATE SEQUENCE attempts;
      CREATE FUNCTION refuse_first() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('attempts') = 1 THEN RAISE EXCEPTION USING ERRCODE = '40001'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER refuse_first BEFORE INSERT ON notes FOR EACH ROW EXECUTE FUNCTION refuse_first()`);
    const before = opened.statements.retried.serialization_failure;
    const write = writingNotes();
    const responses = await Promise.all(numbers(5).map((number) => write(number, 'once')));
    await opened.query('DROP TRIGGER refuse_first ON notes');

    expect(responses).toEqual(numbers(5).map((number) => written(number, 'once')));
    expect(opened.statements.retried.serialization_failure - before).toBe(5);
    expect(await opened.query('SELECT DISTINCT writes FROM notes')).toEqual([{ writes: 1 }]);
  });
});
