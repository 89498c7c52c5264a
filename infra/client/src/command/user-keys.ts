import { faultOfParameter, type Signal } from '../service-response.ts';
import type { User, Users } from '../users.ts';

/** The members by which a user is found. */
export const USER_KEYS = ['id', 'email', 'external_id'] as const;
export type UserKey = (typeof USER_KEYS)[number];

/** The user with this value. */
export async function findByKey(
  users: Users,
  by: UserKey,
  value: string,
  options: Signal = {},
): Promise<User | undefined> {
  if (by === 'email') return users.findByEmail(value, options);
  if (by === 'external_id') return users.findByExternalId(value, options);
  return (await listByIds(users, [value], options).next()).value || undefined;
}

/** Users that are read in one request: by their ids, and of the whole list. */
export const MAX_IDS = 100;
export const PAGE = 1000;

/** The users with these ids, in one request. */
export const listByIds = (users: Users, ids: readonly string[], options: Signal = {}) =>
  users.list({ ids: [...ids], limit: MAX_IDS }, options);

/** Parts of a list, of at most `size` elements. */
export function* splitList<Element>(
  list: readonly Element[],
  size: number,
): Generator<readonly Element[], void> {
  for (let first = 0; first < list.length; first += size) yield list.slice(first, first + size);
}

/** What is wrong with a value by which a user is found, as the service says it; undefined if nothing is. */
export function faultOfKey(by: UserKey, value: unknown): string | undefined {
  if (typeof value !== 'string') return 'must be a string';
  if (by === 'id')
    return faultOfParameter('/api/v1/users/{user_id}', 'path', { user_id: value }) && 'must be a UUID';
  if (value === '' || [...value].length > 255) return 'must have 1 to 255 characters';
  if (/[\0\p{Surrogate}]/u.test(value)) return 'must have no U+0000 and no lone surrogate';
  const fault = faultOfParameter('/api/v1/users/', 'query', { [by]: value });
  return fault && FORMS[by];
}

const FORMS = {
  email:
    'must have exactly one @ with at least one character on each side, and no white space or control characters',
  external_id: 'must have no control characters',
};
