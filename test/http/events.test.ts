import { readdirSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import { createUser } from '../../handlers/users/create.ts';
import { deleteUser } from '../../handlers/users/delete.ts';
import { unmatched } from '../../lib/endpoint/unmatched.ts';
import { startComposition } from '../stage/composition.ts';
import { type EventParticulars, eventOf } from '../stage/events.ts';
import { freshAddress, refusal, USERS } from '../stage/responses.ts';

const FOLDER = new URL('../../events/', import.meta.url);
const jsonIn = (folder: string) =>
  readdirSync(new URL(folder, FOLDER)).flatMap((file) => /^(.+)\.json$/.exec(file)?.[1] ?? []);

const rest = unmatched(endpoints.map(({ route }) => route));

const stage = await startComposition();
afterAll(stage.stop);
for (const name of ['ada', 'GRACE', 'katherine']) await stage.createUser({ email: `${name}@example.com` });

/** Calls the function that API Gateway would call. A route without parameters comes first. */
async function call(name: string, particulars: EventParticulars = {}) {
  const { rawPath, requestContext } = await eventOf(name);
  const { method } = requestContext.http;
  const [endpoint = rest] = endpoints
    .filter(({ route }) => route.method === (method === 'HEAD' ? 'GET' : method))
    .filter(({ route }) => new RegExp(`^${route.path.replace(/\{\w+\}/, '[^/]+')}$`).test(rawPath))
    .sort((one, other) => one.route.path.indexOf('{') - other.route.path.indexOf('{'));
  return { rawPath, response: await stage.call(endpoint, name, particulars) };
}

describe('an event gets the status of its operation:', () => {
  const statusOf = (name: string) =>
    /^createUser(?!s-partial)/.test(name) ? 201 : /^deleteUser|options/.test(name) ? 204 : 200;
  const bodies: Readonly<Record<string, () => object>> = {
    createUser: () => ({ email: freshAddress() }),
    createUsers: () => ({ items: [{ email: freshAddress() }] }),
  };

  const names = jsonIn('.').filter((name) => name !== 'createUser-key');

  test.each(names.map((name) => [name, statusOf(name)] as const))('%s, %i', async (name, status) => {
    const { id } = await stage.createUser();
    const body = bodies[name]?.();

    const { response } = await call(name, { id, ...(body && { body: JSON.stringify(body) }) });
    expect(response.status).toBe(status);
    // HEAD, too, has no content.
    expect(response.body === '').toBe(status === 204 || name.endsWith('-head'));
  });
});

describe('a refused event gets the status of its name:', () => {
  const alone = jsonIn('refusals').filter((name) => !/^(410-user-gone|422-key-reused)$/.test(name));

  test.each(alone)('%s', async (name) => {
    const token = name.startsWith('403') && (await stage.issuer.tokenFor('users.read', 'orders.write'));
    const existing = name.startsWith('412') && (await stage.createUser());
    const { response, rawPath } = await call(`refusals/${name}`, {
      ...(token && { token }),
      ...(existing && { id: existing.id }),
    });
    const status = Number(name.slice(0, 3));
    const instance = existing ? USERS + existing.id : rawPath;

    expect(response.status).toBe(status);
    expect(response.body).toMatchObject({ status, instance });
  });

  test('a key with other values, and a key of a deleted user', async () => {
    const body = JSON.stringify({ email: 'keyed@example.com' });
    const created = await stage.call(createUser, 'createUser-key', { body });
    const { id } = created.body as { id: string };
    expect(created.status).toBe(201);
    expect(await stage.call(createUser, 'refusals/422-key-reused')).toEqual(
      refusal('idempotency_key_reused_error', USERS),
    );
    expect((await stage.call(deleteUser, 'deleteUser', { id })).status).toBe(204);
    expect(await stage.call(createUser, 'refusals/410-user-gone', { body })).toEqual(
      refusal('gone_error', USERS),
    );
  });
});
