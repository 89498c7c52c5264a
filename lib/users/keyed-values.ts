import { createdFields } from './fields.ts';

const always = createdFields.filter(({ inKey }) => inKey === 'always').map(({ name }) => name);
const whenSet = createdFields.filter(({ inKey }) => inKey === 'when_set').map(({ name }) => name);

/**
 * The values of a user to create that identify it under an idempotency key. A field that a later version added is among
 * them only if it is set, so that the digests of requests without it stay the same. Null means not set. A value that is
 * not an object is itself what identifies it.
 */
export function keyedValues(user: unknown): unknown {
  if (typeof user !== 'object' || user === null) return user;
  const values: Readonly<Record<string, unknown>> = { ...user };
  const set = whenSet.filter((name) => values[name] !== undefined && values[name] !== null);
  return [...always.map((name) => values[name]), ...set.map((name) => [name, values[name]])];
}
