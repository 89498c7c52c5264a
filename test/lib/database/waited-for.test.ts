import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, openDatabase } from '../../../lib/database/database.ts';
import { prepare } from '../../../lib/database/prepared.ts';
import { readSettings } from '../../../lib/settings.ts';
import { untilUnderWay } from '../../stage/locks.ts';
import { createDatabase } from '../../stage/postgres.ts';
import { environmentOf } from '../../stage/service.ts';
import { startIssuer } from '../../stage/tokens.ts';
import { until } from '../../stage/until.ts';

let database: Awaited<ReturnType<typeof createDatabase>>;
let issuer: Awaited<ReturnType<typeof startIssuer>>;
let opened: Database;

beforeAll(async () => {
  [database, issuer] = await Promise.all([createDatabase(), startIssuer()]);
  opened = openDatabase(readSettings(environmentOf(database, issuer)).postgres);
});

afterAll(async () => {
  await Promise.all([opened.close(1), issuer.stop()]);
  await database.drop();
});

/** Takes a second, for however many ids at once. */
function napping(kind: 'lookup' | 'item') {
  const nap = prepare<{ ids: readonly [string] }, { id: string }>(
    opened.statements,
    'SELECT ids',
    ({ ids }) => sql`with slept as materialized (select pg_sleep(1))
      select id from slept, unnest(${ids}::uuid[]) as id`,
    kind,
  );
  return (number: number) => nap({ ids: [idOf(number)] });
}

const idOf = (number: number) => `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;
const numbers = (count: number) => Array.from({ length: count }, (_, index) => index);
const waitedFor = (count: number) =>
  until(`${count} wait`, () => opened.connections().waitedFor === count, { every: 1 });

describe('among those that wait for a connection', () => {
  test('are lookups that gather while one is on its way', async () => {
    const nap = napping('lookup');
    const first = nap(0);
    await waitedFor(0);
    const gathered = numbers(5).map((number) => nap(number + 1));

    expect(opened.connections()).toMatchObject({ waitedFor: 5 });
    expect(await Promise.all([first, ...gathered])).toEqual(
      numbers(6).map((number) => [{ id: idOf(number) }]),
    );
    expect(opened.connections()).toMatchObject({ waitedFor: 0 });
  });

  test('are writes that gather while all connections for writes have one', async () => {
    const nap = napping('item');
    const sent: Promise<unknown>[] = [];
    for (const number of numbers(3)) {
      sent.push(nap(number));
      await waitedFor(0);
    }
    const gathered = numbers(5).map((number) => nap(number + 3));
    await untilUnderWay(3, database);

    expect(opened.connections()).toMatchObject({ waitedFor: 5 });
    expect(await Promise.all([...sent, ...gathered])).toEqual(
      numbers(8).map((number) => [{ id: idOf(number) }]),
    );
    expect(opened.connections()).toMatchObject({ waitedFor: 0 });
  });
});
