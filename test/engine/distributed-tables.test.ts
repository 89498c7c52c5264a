import { beforeAll, expect, test } from 'vitest';
import { BATCH, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

// On plain PostgreSQL, the behaviour of Citus: errors that PostgreSQL does not have, unique indexes with the name of a
// shard, and an insert with an empty plan.

const service = serviceUnderTest(() => ({
  SVC_POSTGRES_ENGINE: 'distributed',
  SVC_POSTGRES_STATEMENT_TIMEOUT: '1',
}));

beforeAll(async () => {
  await service.database.query(`
    CREATE SEQUENCE attempts;
    CREATE FUNCTION act_like_shards() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF NEW.full_name = 'Nothing' THEN RETURN NULL; END IF;
      PERFORM nextval('attempts');
      IF NEW.full_name = 'Unknown' THEN
        RAISE 'could not commit transaction for shard 102008 on at least one active node' USING ERRCODE = 'XX000';
      END IF;
      IF NEW.full_name = 'Serialized' AND currval('attempts') % 3 <> 0 THEN
        RAISE 'could not serialize access due to concurrent update' USING ERRCODE = 'XX000';
      END IF;
      IF NEW.full_name = 'Moved' AND currval('attempts') % 3 <> 0 THEN
        RAISE 'could not find the intermediate result file' USING ERRCODE = 'CIINF';
      END IF;
      IF NEW.full_name = 'Unsupported' THEN RAISE 'not supported' USING ERRCODE = '0A000'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER act_like_shards BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION act_like_shards();
    CREATE UNIQUE INDEX users_other_key ON users (full_name) WHERE full_name = 'Unique';
    ALTER INDEX users_email_key RENAME TO users_email_key_102008;
    ALTER INDEX users_external_id_key RENAME TO users_external_id_key_102008`);
});

let count = 0;

function bodyOf(full_name: string) {
  count += 1;
  return { email: `shard-${count}@example.com`, full_name, external_id: `shard-${count}` };
}

async function attempts(): Promise<number> {
  const [row] = await service.database.query('SELECT last_value::int AS count FROM attempts');
  return Number(row?.count);
}

test('a create with an external id that stores nothing without a conflict is 503', async () => {
  expect(await service.call('POST', USERS, bodyOf('Nothing'))).toEqual(
    refusal('service_unavailable_error', USERS),
  );
});

test.each([
  ['an unknown outcome (XX000)', 'Unknown', 'service_unavailable_error'],
  ['a statement that is not supported', 'Unsupported', 'internal_server_error'],
] as const)('%s is not sent again', async (_case, name, problem) => {
  await service.call('POST', USERS, bodyOf('Prepared'));
  const before = await attempts();
  const response = await service.call('POST', USERS, bodyOf(name));

  expect(response).toEqual(refusal(problem, USERS));
  expect((await attempts()) - before).toBe(1);
  expect((await service.events()).map(({ message }) => message)).toContainEqual(
    name === 'Unknown' ? expect.stringContaining('XX000: could not commit transaction') : expect.anything(),
  );
});

test.each(['Serialized', 'Moved'])('a conflict with a code of Citus is sent again: %s', async (name) => {
  expect((await service.call('POST', USERS, bodyOf(name))).status).toBe(201);
});

test('a write that another unique index refuses is 500 at once, and the log has the name of the index', async () => {
  const { headers } = await service.call('POST', USERS, bodyOf('Unique'));
  const { location = '' } = (await service.call('POST', USERS, bodyOf('First'))).headers;
  const before = await attempts();
  const responses = [
    await service.call('POST', USERS, bodyOf('Unique')),
    await service.call('POST', USERS, bodyOf('Unique'), { headers: { 'idempotency-key': 'other-key' } }),
    await service.call('POST', BATCH, { items: [bodyOf('Unique')] }),
    await service.call('POST', BATCH, { items: [bodyOf('Unique')], mode: 'partial' }),
    await service.call('PATCH', location, { full_name: 'Unique' }),
  ];
  const causes = (await service.events()).filter(({ status_code }) => status_code === 500).slice(-5);

  expect(headers.etag).toBe('"1"');
  expect(responses.map(({ status }) => status)).toEqual([500, 500, 500, 500, 500]);
  expect((await attempts()) - before).toBe(4);
  expect(causes.map((cause) => JSON.stringify(cause).includes('users_other_key'))).toEqual(
    Array(5).fill(true),
  );
});

test('a value that conflicts with the index of a shard is 409', async () => {
  const body = bodyOf('First');
  await service.call('POST', USERS, body);
  const { location = '' } = (await service.call('POST', USERS, bodyOf('Second'))).headers;
  const headers = { 'idempotency-key': 'shard-key' };
  const responses = [
    await service.call('POST', USERS, body),
    await service.call('POST', USERS, body, { headers }),
    await service.call('PATCH', location, { email: body.email }),
    await service.call('POST', BATCH, { items: [body] }),
  ];

  expect(responses.map(({ status }) => status)).toEqual([409, 409, 409, 409]);
});
