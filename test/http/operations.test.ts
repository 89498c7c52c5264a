import { beforeAll, describe, expect, test } from 'vitest';
import { health } from '../../handlers/probes/health.ts';
import { ready } from '../../handlers/probes/ready.ts';
import { createUser } from '../../handlers/users/create.ts';
import { createUsers } from '../../handlers/users/create-batch.ts';
import { deleteUser } from '../../handlers/users/delete.ts';
import { getUser } from '../../handlers/users/get.ts';
import { listUsers } from '../../handlers/users/list.ts';
import { updateUser } from '../../handlers/users/update.ts';
import type { Endpoint } from '../../lib/endpoint/endpoint.ts';
import { startComposition } from '../stage/composition.ts';
import { probe, refusal, success, TIMESTAMP, type UserBody, user } from '../stage/responses.ts';

let stage: Awaited<ReturnType<typeof startComposition>>;

beforeAll(async () => {
  stage = await startComposition();
  return () => stage.stop();
});

/** Calls an endpoint with an event and the token of a caller that holds `role`. */
async function call(endpoint: Endpoint, name: string, role: string, particulars = {}) {
  return stage.call(endpoint, name, { token: await stage.issuer.tokenFor(role), ...particulars });
}

describe('createUser', () => {
  test('stores an active user with a generated id, and returns it with 201, Location and ETag', async () => {
    const response = await call(createUser, 'createUser', 'users.write');
    const { id, created_at } = response.body as UserBody;

    const ada = user({ email: 'ada@example.com', full_name: 'Ada Lovelace', updated_at: created_at });
    expect(response).toEqual(success(201, ada, { location: `/api/v1/users/${id}`, etag: '"1"' }));
  });

  test('reads a body that the gateway has encoded in base64', async () => {
    const response = await call(createUser, 'createUser-base64', 'users.write');
    const { id } = response.body as UserBody;

    const zoe = user({ email: 'zoë@example.com', full_name: 'Zoë Ωmega 🌍' });
    expect(response).toEqual(success(201, zoe, { location: `/api/v1/users/${id}`, etag: '"1"' }));
  });
});

describe('createUsers', () => {
  test('stores all users of a batch, and replays them under its key', async () => {
    const items = ['one@example.net', 'two@example.net'].map((email) => ({ email }));
    const particulars = { body: JSON.stringify({ items }) };
    const response = await call(createUsers, 'createUsers', 'users.write', particulars);

    expect(response).toEqual(success(201, items.map(user)));
    expect(await call(createUsers, 'createUsers', 'users.write', particulars)).toEqual(
      success(201, response.body, { 'idempotency-replayed': 'true' }),
    );
  });

  test('stores the valid items of a partial batch', async () => {
    const instance = '/api/v1/users/batch';
    const refused = (code: 'conflict_error' | 'validation_error', pointer: string) => {
      const { status, body: problem } = refusal(code, instance, { errors: [pointer] });
      return { status, problem };
    };

    expect(await call(createUsers, 'createUsers-partial', 'users.write')).toEqual(
      success(200, [
        { status: 201, user: user({ email: 'alan@example.com' }) },
        refused('validation_error', '#/items/1/email'),
        refused('conflict_error', '#/items/2/email'),
      ]),
    );
  });
});

describe('listUsers', () => {
  test('returns a plain array without an envelope', async () => {
    const first = await stage.createUser({ full_name: 'one' });
    const second = await stage.createUser({ full_name: 'two' });

    const response = await call(listUsers, 'listUsers', 'users.read');

    expect(response).toEqual(success(200, expect.any(Array)));
    expect((response.body as UserBody[]).slice(-2)).toEqual([first, second]);
  });

  test('combines filters by "and"', async () => {
    const body = JSON.stringify({ email: 'ada+NEWS@example.com' });
    const { body: ada } = await call(createUser, 'createUser', 'users.write', { body });
    const { id } = ada as UserBody;

    expect(await call(listUsers, 'listUsers-filters', 'users.read', { id })).toEqual(success(200, [ada]));
    expect(await call(listUsers, 'listUsers-filters', 'users.read')).toEqual(success(200, []));
  });

  test('continues after a cursor', async () => {
    const last = await stage.createUser();

    const { status, body } = await call(listUsers, 'listUsers-cursor', 'users.read');

    expect(status).toBe(200);
    expect((body as UserBody[]).at(-1)).toEqual(last);
  });
});

describe('getUser', () => {
  test('returns the user with the id', async () => {
    const given = await stage.createUser({ full_name: 'Grace Hopper' });

    const response = await call(getUser, 'getUser', 'users.read', { id: given.id });

    expect(response).toEqual(success(200, given, { etag: '"1"' }));
  });

  test('responds to HEAD with the headers of GET and no content', async () => {
    const given = await stage.createUser();

    const response = await call(getUser, 'getUser-head', 'users.read', { id: given.id });

    const length = String(Buffer.byteLength(JSON.stringify(given)));
    expect(response).toEqual(success(200, '', { etag: '"1"', 'content-length': length }));
  });
});

describe('updateUser', () => {
  test('changes the given fields and returns the updated user', async () => {
    const given = await stage.createUser({ full_name: 'Ada Lovelace' });

    const response = await call(updateUser, 'updateUser', 'users.write', { id: given.id });

    const changed = { full_name: 'Augusta Ada King', is_active: false };
    const updated_at = expect.stringMatching(TIMESTAMP);
    expect(response).toEqual(success(200, { ...given, ...changed, updated_at }, { etag: '"2"' }));
    expect((response.body as UserBody).updated_at > given.updated_at).toBe(true);
  });

  test('writes if If-Match has the current version', async () => {
    const given = await stage.createUser();
    const headers = { 'if-match': '"1"' };

    const response = await call(updateUser, 'updateUser', 'users.write', { id: given.id, headers });

    expect(response.status).toBe(200);
    expect(response.headers.etag).toBe('"2"');
  });
});

describe('deleteUser', () => {
  test('returns 204 without a body, and the user is deleted', async () => {
    const { id } = await stage.createUser();

    const response = await call(deleteUser, 'deleteUser', 'users.write', { id });

    expect(response).toEqual(success(204, ''));
    expect(await call(getUser, 'getUser', 'users.read', { id })).toEqual(
      refusal('not_found_error', `/api/v1/users/${id}`),
    );
  });
});

test('the probes are 200 while the process runs and the database is connected', async () => {
  expect(await call(health, 'health', 'none')).toEqual(probe('healthy'));
  expect(await call(ready, 'ready', 'none')).toEqual(probe('ready'));
});
