// The users that are there before a run: everybody can derive each part of one from its number.

/** The time of creation of the user before the first one. */
export const FIRST_CREATED = '2024-01-01T00:00:00Z';

/** The id of the user with this number, from 1 on: in the order of creation, as UUIDs version 7 are. */
export function idOf(number: number): string {
  return `018f0000-0000-7000-8000-${String(number).padStart(12, '0')}`;
}

/** The address of the user with this number. */
export function emailOf(number: number): string {
  return `user-${number}@example.com`;
}

/** Both in SQL, where `n` is the expression of the number. */
export const idInSql = (n: string) => `('${idOf(0).slice(0, -12)}' || lpad(${n}::text, 12, '0'))::uuid`;
export const emailInSql = (n: string) => `('${emailOf(0).replace('0', `' || ${n} || '`)}')`;
