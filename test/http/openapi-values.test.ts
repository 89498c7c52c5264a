import { expect, test } from 'vitest';
import type * as z from 'zod';
import { ChangesQuery } from '../../lib/changes/changes-query.ts';
import { IdempotencyHeaders } from '../../lib/idempotency/idempotency-key.ts';
import { UserListQuery } from '../../lib/users/list-query.ts';
import { UserCreate, UserPath } from '../../lib/users/user.ts';
import { operationOf, resolved, type Schema } from '../fuzz/document.ts';
import { fc } from '../stage/fast-check.ts';

/** The schema of a parameter in the document. */
const parameter = (operationId: string, name: string) =>
  operationOf(operationId).parameters.find((one) => one.name === name)?.schema as Schema;

/** The schema of a member of a body in the document. */
function member(operationId: string, name: string): Schema {
  const { properties } = resolved(operationOf(operationId).bodies['application/json'] as Schema);
  const schema = properties?.[name] as Schema;
  return schema.anyOf?.find(({ type }) => type === 'string') ?? schema;
}

/** Whether the document allows a text, both with patterns by code points and with patterns by UTF-16 units. */
function allows({ pattern = '', minLength = 0, maxLength = Number.POSITIVE_INFINITY }: Schema, text: string) {
  const { length } = [...text];
  const verdicts = ['u', ''].map((flag) => new RegExp(pattern, flag).test(text));
  expect(new Set(verdicts).size, `both patterns on ${JSON.stringify(text)}`).toBe(1);
  return verdicts[0] === true && length >= minLength && length <= maxLength;
}

const accepts = (schema: z.ZodObject, name: string) => (text: string) => {
  const { error } = schema.safeParse({ email: 'ada@example.com', [name]: text });
  return !error?.issues.some(({ path }) => path[0] === name);
};

const CHARACTERS = [
  ...'aZ09@@@-_.,"\\/:+ \t\n',
  ...['\0', '\x1f', '\x7f', '\x85', '\xa0', '\u180e', '\u200b', '\u2028', '\u3000', '\ufeff', '\uffff'],
  ...['é', '٣', '漢', '😀', '\u{10ffff}'],
];

/** Texts near the limits of what the service accepts. */
const texts = fc.oneof(
  fc.string({ unit: fc.constantFrom(...CHARACTERS), maxLength: 8 }),
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc
    .tuple(fc.constantFrom('a', '😀', '"', '\\', 'a@'), fc.integer({ min: 126, max: 260 }))
    .map(([unit, count]) => unit.repeat(count)),
);

test.each<readonly [string, Schema, (text: string) => boolean]>([
  ['the email of a create', member('createUser', 'email'), accepts(UserCreate, 'email')],
  ['the email of the list', parameter('listUsers', 'email'), accepts(UserListQuery, 'email')],
  ['the full name of a create', member('createUser', 'full_name'), accepts(UserCreate, 'full_name')],
  [
    'the Idempotency-Key',
    parameter('createUser', 'Idempotency-Key'),
    (text) => /^[ \t]|[ \t]$/.test(text) || accepts(IdempotencyHeaders, 'Idempotency-Key')(text),
  ],
  ['exclude_actor', parameter('listChanges', 'exclude_actor'), accepts(ChangesQuery, 'exclude_actor')],
  ['user_id', parameter('getUser', 'user_id'), accepts(UserPath, 'user_id')],
])('the document allows exactly the texts that the service accepts for %s', (name, schema, isAccepted) => {
  const values =
    name === 'the Idempotency-Key' ? texts.map((text) => text.replace(/^[ \t]+|[ \t]+$/g, '')) : texts;
  const agree = fc.property(values, (text) => allows(schema, text) === isAccepted(text));
  fc.assert(agree, { numRuns: 3000 });
});
