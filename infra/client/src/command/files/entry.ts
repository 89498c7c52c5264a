import { isObject, type Problem } from '../../problem.ts';
import type { NewUser } from '../../users.ts';

/** Where a user of a file is: the line at which it begins, and in JSON its index in the list. */
export type Place = { readonly line: number; readonly index?: number };
/** A user of a file. `position` and `bytes` are its part of an Idempotency-Key. */
export type Item = Place & { readonly position: number; readonly bytes: Buffer; readonly user: NewUser };
/** What is not a user, and why. `bytes` are those of a line that 1.3.0 sent. */
export type Refusal = Place & Pick<Item, 'position'> & Partial<Item> & { readonly problem: Problem };
export type Entry = Item | Refusal;

/** The entry of a value of JSON. `read` makes the user. Without `bytes`, they are those of the user as JSON. */
export function createEntry(
  place: Place & Pick<Item, 'position'>,
  { text, value }: { readonly text: string; readonly value: unknown },
  read: (object: object) => object,
  bytes?: Buffer,
): Entry {
  if (value === undefined) return { ...place, problem: invalid('must be valid JSON') };
  if (!isObject(value)) return { ...place, problem: invalid('must be an object') };
  const user = read(value) as NewUser;
  if (hasLostNumber(text, value))
    return {
      ...{ ...place, ...(bytes && { bytes }), user },
      problem: invalid('must not have a number beyond 1.8e308'),
    };
  // Create ignores this member. Another value than a boolean would create an active user.
  const { is_active } = user as { is_active?: unknown };
  if (is_active != null && typeof is_active !== 'boolean')
    return { ...place, user, problem: invalid('must be a boolean', '#/is_active') };
  try {
    return { ...place, user, bytes: bytes ?? Buffer.from(JSON.stringify(user)) };
  } catch {
    return { ...place, user, problem: TOO_DEEP };
  }
}

/** Whether a number is too large for JavaScript. JSON would write it as null. */
function hasLostNumber(text: string, user: object): boolean {
  if (!/\d[eE]|\d{309}/.test(text)) return false;
  const left: unknown[] = [user];
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    if (one === Number.POSITIVE_INFINITY || one === Number.NEGATIVE_INFINITY) return true;
    if (typeof one === 'object' && one !== null) for (const inner of Object.values(one)) left.push(inner);
  }
  return false;
}

const instance = '/api/v1/users/batch';

/** The problem of a line that the service, too, would refuse. */
export function invalid(detail: string, pointer = '#'): Problem {
  return {
    type: 'urn:svc:error:validation_error',
    title: 'Unprocessable Entity',
    status: 422,
    detail: 'Some values are not valid. See errors.',
    instance,
    errors: [{ pointer, detail }],
  };
}

/** A place of a file for a message. */
export function nameOf({ line, index }: Place): string {
  return `Line ${line}${index === undefined ? '' : ` (index ${index})`}`;
}

/** What is wrong with a line, in words. */
export function faultsOf(problem: Problem): string {
  const faults = 'errors' in problem ? problem.errors : undefined;
  const text = faults?.map((fault) =>
    `${'pointer' in fault ? fault.pointer.slice(2) : ''} ${fault.detail}`.trim(),
  );
  return text?.join(', ') ?? problem.detail;
}

/** Parsing has no limit for nested values, and writing them has one. */
export const TOO_DEEP = invalid('must not be nested so deeply');

/** The problem of a line that is too long for any request. */
export const TOO_LONG: Problem = {
  type: 'urn:svc:error:payload_too_large_error',
  title: 'Payload Too Large',
  status: 413,
  detail: 'The line is too long.',
  instance,
};
