import { expect, test } from 'vitest';
import { fields, updatedFields } from '../../lib/users/fields.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();

/** Columns that are not fields: the version and the changed fields of updates. */
const OTHERS = ['changed', 'version'];

test('the columns of users are the fields, with their SQL types', async () => {
  const columns = await service.database.query(`
    SELECT column_name AS name, regexp_replace(udt_name, '^bool$', 'boolean') AS "sqlType", is_nullable AS nullable
    FROM information_schema.columns WHERE table_name = 'users'
  `);
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
