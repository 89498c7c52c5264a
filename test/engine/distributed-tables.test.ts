import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { administer } from '../stage/administration.ts';
import { BATCH, USERS } from '../stage/keyed.ts';
import { readResponse, refusal } from '../stage/responses.ts';
import { startService } from '../stage/service.ts';

// On plain PostgreSQL, the behaviour of Citus with distributed tables: errors that PostgreSQL does not have, unique
// indexes with the name of a shard, and an insert with an empty plan.

let service: Awaited<ReturnType<typeof startService>>;
let admin: Awaited<ReturnType<typeof administer>>;

beforeAll(async () => {
  service = await startService({ SVC_POSTGRES_STATEMENT_TIMEOUT: '1' });
  admin = await administer(service.database.name);
  await admin.query(`
    CREATE SEQUENCE attempts;
    CREATE FUNCTION act_like_shards() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      PERFORM nextval('attempts');
      IF NEW.full_name = 'Nothing' THEN RETURN NULL; END IF;
      IF NEW.full_name = 'Lost' THEN
        RAISE 'connection to the remote node worker:5432 failed' USING ERRCODE = 'XX000';
      END IF;
      IF NEW.full_name = 'Defect' THEN RAISE 'unexpected state' USING ERRCODE = 'XX000'; END IF;
      IF NEW.full_name = 'Unsupported' THEN RAISE 'not supported' USING ERRCODE = '0A000'; END IF;
      RETURN NEW;
    END $$;
    CREATE TRIGGER act_like_shards BEFORE INSERT ON users FOR EACH ROW EXECUTE FUNCTION act_like_shards();
    ALTER INDEX users_email_key RENAME TO users_email_key_102008;
    ALTER INDEX users_external_id_key RENAME TO users_external_id_key_102008`);
});

afterAll(async () => {
  await admin.end();
  await service.stop();
});

let count = 0;

function bodyOf(full_name: string) {
  count += 1;
  return { email: `shard-${count}@example.com`, full_name };
}

async function attempts(): Promise<number> {
  const [row] = await admin.query('SELECT last_value::int AS count FROM attempts');
  return Number(row?.count);
}

test('a create that stores nothing without a conflict is 503', async () => {
  const response = await readResponse(await service.call('POST', USERS, bodyOf('Nothing')));

  expect(response).toEqual(refusal('service_unavailable_error', USERS));
});

test('a connection lost behind PostgreSQL (XX000) is 503', async () => {
  const response = await readResponse(await service.call('POST', USERS, bodyOf('Lost')));

  expect(response).toEqual(refusal('service_unavailable_error', USERS));
});

test.each(['Defect', 'Unsupported'])(
  'any other internal or unsupported statement is 500 without a retry: %s',
  async (name) => {
    await service.call('POST', USERS, bodyOf('Prepared'));
    const before = await attempts();

    const response = await readResponse(await service.call('POST', USERS, bodyOf(name)));

    expect(response).toEqual(refusal('internal_server_error', USERS));
    expect((await attempts()) - before).toBe(1);
  },
);

describe('a value that conflicts with the index of a shard is 409', () => {
  test.each(['plain', 'under a key'])('on create, %s', async (how) => {
    const body = bodyOf('First');
    await service.call('POST', USERS, body);
    const headers = how === 'plain' ? {} : { 'idempotency-key': `shard-key-${count}` };

    const { status } = await service.call('POST', USERS, body, { headers });

    expect(status).toBe(409);
  });

  test('on update', async () => {
    const body = bodyOf('First');
    await service.call('POST', USERS, body);
    const other = await service.call('POST', USERS, bodyOf('Second'));

    const { status } = await service.call('PATCH', other.headers.get('location') ?? '', {
      email: body.email,
    });

    expect(status).toBe(409);
  });

  test('on an atomic batch', async () => {
    const body = bodyOf('First');
    await service.call('POST', USERS, body);

    const { status } = await service.call('POST', BATCH, { items: [body] });

    expect(status).toBe(409);
  });
});
