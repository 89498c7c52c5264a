import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { callerOf } from '../stage/built-service.ts';
import type { createDatabase } from '../stage/postgres.ts';
import type { UserBody } from '../stage/responses.ts';
import { repeat } from '../stage/until.ts';

const USERS = '/api/v1/users/';

type Issuer = Parameters<typeof callerOf>[1];

/** Creates, updates, reads and deletes users without a pause, and collects unexpected responses. */
export function startWriters(url: string, issuer: Issuer, count: number) {
  const call = callerOf(url, issuer);
  const wrong: string[] = [];
  let [longest, writes] = [0, 0];

  async function expectStatus(
    status: number,
    method: string,
    path: string,
    body?: unknown,
  ): Promise<unknown> {
    const begun = performance.now();
    const response = await call(method, path, body).catch((fault: Error) => fault);
    const text = response instanceof Error ? response.message : await response.text();
    longest = Math.max(longest, performance.now() - begun);
    writes += method === 'GET' ? 0 : 1;
    if (response instanceof Error || response.status !== status) wrong.push(`${method} ${path}: ${text}`);
    return text && JSON.parse(text);
  }

  async function write(): Promise<void> {
    const email = `${randomUUID()}@example.com`;
    const user = (await expectStatus(201, 'POST', USERS, { email })) as UserBody;
    await expectStatus(200, 'PATCH', USERS + user.id, { full_name: 'Ada' });
    const read = (await expectStatus(200, 'GET', USERS + user.id)) as UserBody;
    if (read.created_at !== user.created_at || read.full_name !== 'Ada') wrong.push(JSON.stringify(read));
    await expectStatus(204, 'DELETE', USERS + user.id);
  }

  const stops = Array.from({ length: count }, () => repeat(write));
  return {
    /**
     * Ends the writers. Resolves with the faults, the number of writes, and the longest response time in
     * milliseconds.
     */
    async stop() {
      await Promise.all(stops.map((stop) => stop()));
      return { wrong, writes, longest: Math.round(longest) };
    },
  };
}

/** Measures how long sessions of the service wait for a lock, without the delays of a busy processor. */
export async function watchLocks(database: Awaited<ReturnType<typeof createDatabase>>) {
  const client = new pg.Client({ ...database, ssl: false });
  await client.connect();
  let longest = 0;
  const stop = repeat(async () => {
    const { rows } = await client.query(`
      SELECT coalesce(max(extract(epoch FROM clock_timestamp() - waitstart)), 0)::float8 AS seconds
      FROM pg_locks JOIN pg_stat_activity USING (pid)
      WHERE NOT granted AND datname = current_database() AND query ~* '^ *(with|insert|update|delete|select)'
        AND waitstart IS NOT NULL
    `);
    longest = Math.max(longest, rows[0].seconds);
    await sleep(10);
  });
  return {
    /** Resolves with the longest wait in seconds. */
    async stop(): Promise<number> {
      await stop();
      await client.end();
      return longest;
    },
  };
}
