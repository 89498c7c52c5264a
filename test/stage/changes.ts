import { expect } from 'vitest';
import { type ServiceResponse, TIMESTAMP, type UserBody } from './responses.ts';
import { until } from './until.ts';

export const CHANGES = '/api/v1/users/changes';

/** A change as in a response. */
export function change(type: string, { id }: Pick<UserBody, 'id'>, version: number, changed: string[] = []) {
  return {
    specversion: '1.0',
    id: expect.stringMatching(/^[1-9]\d*-[\da-f]{8}$/),
    source: '/api/v1/users',
    type,
    subject: id,
    time: expect.stringMatching(TIMESTAMP),
    datacontenttype: 'application/json',
    data: { version, changed, actor: expect.any(String), request_id: expect.any(String) },
  };
}

/** The members of a change that tests read. */
export type ChangeBody = {
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  readonly data: { readonly version: number; readonly actor: string };
};

/** The link to the next page. Throws if there is none. */
export function nextOf({ headers }: Pick<ServiceResponse, 'headers'>): string {
  const [, next] = /^<([^>]+)>; rel="next"$/.exec(headers.link ?? '') ?? [];
  if (!next) throw new Error(`no link to a next page: ${headers.link}`);
  return next;
}

export const cursorIn = (next: string) => new URLSearchParams(next.split('?')[1]).get('cursor') ?? '';

type Call = (method: string, path: string) => Promise<ServiceResponse>;

/** The link to the changes after the last one so far. */
export const endOfFeed = async (call: Call) => nextOf(await call('GET', `${CHANGES}?cursor=now&limit=0`));

/** Follows the links from a page to the first empty page. Resolves with all changes and the last link. */
export async function readOn(call: Call, from: string) {
  const changes: ChangeBody[] = [];
  for (let next = from; ; ) {
    const page = await call('GET', next);
    expect(page.status).toBe(200);
    next = nextOf(page);
    const found = page.body as readonly ChangeBody[];
    if (found.length === 0) return { changes, next };
    changes.push(...found);
  }
}

type Administrator = { query(statement: string): Promise<readonly Record<string, unknown>[]> };

/** The start of the last statement about the feed that PostgreSQL remembers, in microseconds. */
export async function lastLook(administrator: Administrator): Promise<bigint> {
  const [row] = await administrator.query(`
    SELECT coalesce(max(extract(epoch FROM query_start) * 1000000)::bigint, 0)::text AS at FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE '%user_changes_head%' AND pid <> pg_backend_pid()
  `);
  return BigInt(String(row?.at));
}

/** Waits until the service polls for waiting requests. */
export async function untilPolling(administrator: Administrator): Promise<void> {
  for (let polls = 0; polls < 3; polls += 1) {
    const before = await lastLook(administrator);
    await until('a poll', async () => (await lastLook(administrator)) > before);
  }
}

/** Waits until the service no longer polls, which is several times the interval between two polls. */
export async function untilNothingPolls(administrator: Administrator): Promise<void> {
  await until(
    'no poll',
    async () => {
      const before = await lastLook(administrator);
      await new Promise((resolve) => setTimeout(resolve, 400));
      return (await lastLook(administrator)) === before;
    },
    { seconds: 10 },
  );
}
