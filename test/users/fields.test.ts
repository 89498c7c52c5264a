import { expect, test } from 'vitest';
import { FIELDS, type FieldTable, fields, updatedFields } from '../../lib/users/fields.ts';
import { inDatabase } from '../stage/rows.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();

/** Columns that are not fields: the version and the changed fields of updates. */
const OTHERS = ['changed', 'version'];

test('the columns of users are the fields, with their SQL types', async () => {
  const columns = await inDatabase(
    service.database,
    `SELECT column_name AS name, regexp_replace(udt_name, '^bool$', 'boolean') AS "sqlType", is_nullable AS nullable
     FROM information_schema.columns WHERE table_name = 'users'`,
  );
  const declared = fields.map(({ name, sqlType, onCreate }) => ({
    name,
    sqlType,
    nullable: onCreate === 'optional' ? 'YES' : 'NO',
  }));
  const found = columns.filter(({ name }) => !OTHERS.includes(String(name)));

  expect(new Set(found), 'lib/users/fields.ts and lib/migrations/ differ').toEqual(new Set(declared));
});

test('the numbers of fields in stored changes are permanent, and each belongs to one field', () => {
  const bits = updatedFields.map(({ changeBit }) => changeBit);

  expect(bits).toEqual([...new Set(bits)]);
  expect(Object.fromEntries(updatedFields.map(({ name, changeBit }) => [name, changeBit]))).toMatchObject({
    email: 1,
    full_name: 2,
    is_active: 4,
    external_id: 8,
  });
});

test('an entry with a missing member, or with the name of a parameter of the statements, does not compile', () => {
  const { full_name } = FIELDS;
  const { inKey: _key, ...withoutKey } = full_name;
  const { nullOnUpdate: _null, ...withoutNull } = full_name;
  const { inResponses: _responses, ...withoutResponses } = full_name;
  const { changeNumber: _number, ...withoutNumber } = full_name;
  const refused: FieldTable = {
    // @ts-expect-error a parameter of the statements has this name
    actor: full_name,
    // @ts-expect-error whether it belongs to the values under a key
    one: withoutKey,
    // @ts-expect-error what null means in an update
    two: withoutNull,
    // @ts-expect-error whether a response always has it
    three: withoutResponses,
    // @ts-expect-error its number in stored changes
    four: withoutNumber,
    // @ts-expect-error a smallint does not have this bit
    five: { ...full_name, changeNumber: 15 },
  };

  expect(Object.keys(refused)).toHaveLength(6);
});
