import { expect } from 'vitest';
import { type Answer, TIMESTAMP, type UserBody } from './answers.ts';
import { until } from './until.ts';

/** The path of the changes of all users. */
export const CHANGES = '/api/v1/users/changes';

/** A change as it is answered. */
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

/** What a test reads of a change. */
export type ChangeBody = {
  readonly id: string;
  readonly type: string;
  readonly subject: string;
  readonly data: { readonly version: number; readonly actor: string };
};

/** Where the next page is; every page of changes tells it. */
export function nextOf({ headers }: Pick<Answer, 'headers'>): string {
  const [, next] = /^<([^>]+)>; rel="next"$/.exec(headers.link ?? '') ?? [];
  if (!next) throw new Error(`no link to a next page: ${headers.link}`);
  return next;
}

/** The cursor in a link. */
export const cursorIn = (next: string) => new URLSearchParams(next.split('?')[1]).get('cursor') ?? '';

type Call = (method: string, path: string) => Promise<Answer>;

/** The link to what comes after the last change so far. */
export const endOfFeed = async (call: Call) => nextOf(await call('GET', `${CHANGES}?cursor=now&limit=0`));

/** Follows the links from a page on, to the first that is empty; resolves with all changes, and the link behind them. */
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

/** When the last statement about the feed began, as far as PostgreSQL remembers; in microseconds. */
export async function lastLook(administrator: Administrator): Promise<bigint> {
  const [row] = await administrator.query(`
    SELECT coalesce(max(extract(epoch FROM query_start) * 1000000)::bigint, 0)::text AS at FROM pg_stat_activity
    WHERE datname = current_database() AND query LIKE '%user_changes_head%' AND pid <> pg_backend_pid()
  `);
  return BigInt(String(row?.at));
}

/** Waits until those who wait for changes are being polled for. */
export async function untilPolling(administrator: Administrator): Promise<void> {
  for (let polls = 0; polls < 3; polls += 1) {
    const before = await lastLook(administrator);
    await until('a poll', async () => (await lastLook(administrator)) > before);
  }
}

/** Waits until nobody is polled for any more: for several times as long as two polls are apart. */
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
