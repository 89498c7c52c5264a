import { beforeAll, expect, test } from 'vitest';
import { seededRandom } from '../lab/load/random.ts';
import { freshAddress, USERS, type UserBody } from '../stage/responses.ts';
import { SEED } from '../stage/seed.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { repeat } from '../stage/until.ts';
import { pagesOf, storedUsers } from './stored-users.ts';

const WRITERS = 6;
const random = seededRandom(SEED);

const service = serviceUnderTest();

/** The users that are stored from the beginning of every walk to its end: every second user, oldest first. */
let staying: readonly UserBody[];
/** The ids of the other users, which the writers delete. */
let leaving: string[];

/** 3,000 users, five per millisecond. Every third user is inactive. */
beforeAll(async () => {
  const users = await storedUsers(
    service,
    `INSERT INTO users (id, email, full_name, is_active, created_at, updated_at)
     SELECT md5(n::text)::uuid, 'first-' || n || '@example.com', CASE n % 2 WHEN 0 THEN 'stays' END, n % 3 <> 0, t, t
     FROM generate_series(1, 3000) AS n,
          LATERAL (SELECT '2026-01-01T00:00:00Z'::timestamptz + n / 5 * interval '1 ms' AS t) AS times`,
  );
  staying = users.filter(({ full_name }) => full_name === 'stays');
  leaving = users.filter(({ full_name }) => full_name !== 'stays').map(({ id }) => id);
});

/** Repeatedly creates a user, changes one and deletes one, and adds each kind of write that succeeds to `done`. */
function startWriter(done: Set<number>) {
  let turn = -1;
  return repeat(async () => {
    turn += 1;
    const { status } = await service.call(...nextWrite(turn));
    // On an engine that is serializable, a conflict may last for longer than the time limit.
    if (status === 503) return;
    expect([200, 201, 204]).toContain(status);
    done.add(turn % 3);
  });
}

function nextWrite(turn: number): readonly [method: string, path: string, body?: unknown] {
  const deleted = turn % 3 === 2 ? leaving.splice(random.below(leaving.length), 1)[0] : undefined;
  if (deleted !== undefined) return ['DELETE', USERS + deleted];
  if (turn % 3 === 0) return ['POST', USERS, { email: freshAddress() }];
  const someone = random.pick(staying);
  return ['PATCH', USERS + someone.id, { full_name: `turn ${turn}`, email: freshAddress() }];
}

test.each<readonly [string, (user: UserBody) => boolean]>([
  ['limit=20', () => true],
  ['limit=20&sort=-created_at', () => true],
  ['limit=7&is_active=false', ({ is_active }) => !is_active],
  ['limit=7&is_active=false&sort=-created_at', ({ is_active }) => !is_active],
])(
  'a walk by links has every user that stays exactly once, in order, beside writers: %s',
  async (query, isMeant) => {
    const written = new Set<number>();
    const writers = Array.from({ length: WRITERS }, () => startWriter(written));
    const pages = await Array.fromAsync(pagesOf(service.call, query)).finally(() =>
      Promise.all(writers.map((stop) => stop())),
    );
    const seen = pages.flat().map(({ id }) => id);

    const meant = staying.filter(isMeant).map(({ id }) => id);
    const stayed = new Set(staying.map(({ id }) => id));
    expect(seen.filter((id) => stayed.has(id))).toEqual(query.includes('=-') ? meant.toReversed() : meant);
    expect(new Set(seen).size).toBe(seen.length);
    expect(written.size).toBe(3);
  },
);
