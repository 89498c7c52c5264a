import { expect } from 'vitest';
import { type ServiceResponse, USERS, type UserBody } from '../stage/responses.ts';
import type { serviceUnderTest } from '../stage/service-under-test.ts';

/** The users of a list, as in its response, after a statement that stores them. */
export async function storedUsers(
  { database }: ReturnType<typeof serviceUnderTest>,
  statement: string,
): Promise<readonly UserBody[]> {
  const list =
    'SELECT id, email, full_name, is_active, created_at, updated_at FROM users ORDER BY created_at, id';
  return JSON.parse(JSON.stringify(await database.query(statement, list)));
}

type Call = (method: string, path: string) => Promise<ServiceResponse>;

/** The pages of a list, from the first one along the links to the last one. */
export async function* pagesOf(call: Call, query: string) {
  for (let target: string | undefined = `${USERS}?${query}`; target; ) {
    const { status, body, headers } = await call('GET', target);
    expect(status).toBe(200);
    yield body as readonly UserBody[];
    target = headers.link?.match(/^<(.*)>; rel="next"$/)?.[1];
  }
}
