// The users that are there before a run. Each part of one is derived from its number.

/** The time of creation of the user before the first one. */
const FIRST_CREATED = '2024-01-01T00:00:00Z';

/** Users with an external id, in addition to all others: a peer has no such member. */
export const USERS_WITH_EXTERNAL_ID = 1000;

const USERS_PER_STATEMENT = 250_000;

/** Each page of the table has one or two users with such a number. */
const ONE_PER_PAGE = 50;

/** The id of the user with this number, from 1 on: in the order of creation, as UUIDs version 7 are. */
export function idOf(number: number): string {
  return `018f0000-0000-7000-8000-${String(number).padStart(12, '0')}`;
}

export function emailOf(number: number): string {
  return `user-${number}@example.com`;
}

type Query = (statement: string) => Promise<unknown>;

/**
 * Adds the users from number 1 to number `to`, and brings the table into the state that it has after a while of use: pages
 * have room for the next version of a row, all is vacuumed, in shared buffers, and written since the last checkpoint. The
 * smallest table reaches this state within a second of load, and the largest one within none of the runs.
 */
export async function fill(query: Query, to: number, progress: (what: string) => void): Promise<void> {
  for (let first = 1; first <= to; first += USERS_PER_STATEMENT) {
    const last = Math.min(first + USERS_PER_STATEMENT - 1, to);
    await query(insert(first, last, 'NULL'));
    progress(`filling: ${last.toLocaleString('en')} of ${to.toLocaleString('en')} users`);
  }
  await query(insert(to + 1, to + USERS_WITH_EXTERNAL_ID, `'external-' || n - ${to}`));
  await query('CREATE EXTENSION IF NOT EXISTS pg_prewarm');
  // The rows of the second update find room where those of the first one were.
  for (const rest of [1, 2]) {
    progress(`updating one user in ${ONE_PER_PAGE}`);
    await query(
      `UPDATE users SET full_name = full_name WHERE right(id::text, 12)::bigint % ${ONE_PER_PAGE} = ${rest}`,
    );
    await query('VACUUM (ANALYZE) users');
  }
  await query('CHECKPOINT');
  await query(`SELECT pg_prewarm(oid) FROM pg_class WHERE relname LIKE 'users%' AND relkind IN ('r', 'i')`);
}

/** One user in fifty is inactive, and one is created each second. */
const insert = (first: number, last: number, externalId: string) => `
  INSERT INTO users (id, email, external_id, full_name, is_active, created_at, updated_at)
  SELECT ('${idOf(0).slice(0, -12)}' || lpad(n::text, 12, '0'))::uuid, 'user-' || n || '@example.com', ${externalId},
    'User ' || n, n % 50 <> 0, created, created
  FROM (SELECT n, timestamptz '${FIRST_CREATED}' + n * interval '1 second' AS created
    FROM generate_series(${first}, ${last}) AS n)`;
