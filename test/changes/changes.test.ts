import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { updatedFields } from '../../lib/users/fields.ts';
import { CHANGES, change, endOfFeed, nextOf } from '../stage/changes.ts';
import { freshAddress, readResponse, refusal, type UserBody } from '../stage/responses.ts';
import { inDatabase } from '../stage/rows.ts';
import { startService } from '../stage/service.ts';

const USERS = '/api/v1/users/';

let service: Awaited<ReturnType<typeof startService>>;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service.stop());

const call = async (method: string, path: string, body?: unknown, headers: Record<string, string> = {}) =>
  readResponse(await service.call(method, path, body, { headers }));

describe('the feed of changes', () => {
  test('has every create, update and delete, in their order', async () => {
    const end = await endOfFeed(call);
    const email = freshAddress();
    const ada = (await call('POST', USERS, { email })).body as UserBody;
    await call('PATCH', USERS + ada.id, { full_name: 'Ada' });
    await call('PATCH', USERS + ada.id, { full_name: 'Ada' });
    await call('PATCH', USERS + ada.id, { email: email.toUpperCase(), is_active: false, full_name: null });
    await call('DELETE', USERS + ada.id);

    const expected = [
      change('user.created', ada, 1),
      change('user.updated', ada, 2, ['full_name']),
      change('user.updated', ada, 3),
      change('user.updated', ada, 4, ['email', 'full_name', 'is_active']),
      change('user.deleted', ada, 5),
    ];
    const page = await call('GET', end);
    expect(page.status).toBe(200);
    expect(page.body).toEqual(expected);
    expect(page.headers['content-type']).toBe('application/json; charset=utf-8');
    expect((await call('GET', nextOf(page))).body).toEqual([]);
    expect((await call('GET', `${USERS}${ada.id.toUpperCase()}/changes`)).body).toEqual(expected);
  });

  test('has those of a batch in the order of its items', async () => {
    const end = await endOfFeed(call);
    const items = ['z', 'b', 'a'].map((name) => ({ email: `${name}.${freshAddress()}` }));
    const users = (await call('POST', `${USERS}batch`, { items })).body as UserBody[];

    expect((await call('GET', end)).body).toEqual(users.map((user) => change('user.created', user, 1)));
  });

  test('is read page by page, with each change once', async () => {
    const end = await endOfFeed(call);
    const made: string[] = [];
    for (let count = 0; count < 10; count += 1) {
      made.push(((await call('POST', USERS, { email: freshAddress() })).body as UserBody).id);
    }
    const seen: string[] = [];
    for (let next = `${end}&limit=3`.replace('limit=100&', ''); seen.length < made.length; ) {
      const page = await call('GET', next);
      seen.push(...(page.body as { subject: string }[]).map(({ subject }) => subject));
      next = nextOf(page);
    }
    expect(seen).toEqual(made);
  });

  test('is CloudEvents if Accept requests them', async () => {
    const accept = { accept: 'text/html, application/cloudevents-batch+json;q=0.5' };
    expect((await call('GET', CHANGES, undefined, accept)).headers['content-type']).toBe(
      'application/cloudevents-batch+json; charset=utf-8',
    );
    const none = { accept: 'application/cloudevents-batch+json;q=0' };
    expect((await call('GET', CHANGES, undefined, none)).headers['content-type']).toBe(
      'application/json; charset=utf-8',
    );
  });

  test('leaves out the changes of exclude_actor', async () => {
    const end = await endOfFeed(call);
    const authorization = `Bearer ${await service.issuer.sign({ sub: 'another one' })}`;
    await call('POST', USERS, { email: freshAddress() });
    const theirs = (await call('POST', USERS, { email: freshAddress() }, { authorization })).body as UserBody;
    const own = (await call('GET', end)).body as { data: { actor: string } }[];

    const rest = await call('GET', `${end}&exclude_actor=${own[0]?.data.actor}`);
    expect(rest.body).toEqual([change('user.created', theirs, 1)]);
    expect(nextOf(rest)).toContain('exclude_actor=');
  });

  test('of an unknown user is 404', async () => {
    const path = `${USERS}11111111-1111-1111-1111-111111111111/changes`;
    expect(await call('GET', path)).toEqual(refusal('not_found_error', path));
  });
});

test.each([
  ['cursor=x', ['cursor']],
  ['limit=0', ['limit']],
  ['limit=1001&wait=21&exclude_actor=&cursor=', ['cursor', 'exclude_actor', 'wait', 'limit']],
])('?%s is 422', async (query, errors) => {
  expect(await call('GET', `${CHANGES}?${query}`)).toEqual(refusal('validation_error', CHANGES, { errors }));
});

describe('with wait,', () => {
  test('a change ends the wait at once', async () => {
    const end = await endOfFeed(call);
    const waiting = [1, 2, 3].map(() => call('GET', `${end}&wait=20`));
    const ada = (await call('POST', USERS, { email: freshAddress() })).body as UserBody;

    for (const page of await Promise.all(waiting)) {
      expect(page.body).toEqual([change('user.created', ada, 1)]);
      expect(nextOf(page)).toContain('wait=20');
    }
  });

  test('the response is empty at the end of the wait', async () => {
    const end = await endOfFeed(call);
    expect((await call('GET', `${end}&wait=1`)).body).toEqual([]);
    expect((await call('GET', `${CHANGES}?cursor=now&wait=1`)).body).toEqual([]);
  });
});

test('`changed` leaves out a field that this version does not know', async () => {
  const end = await endOfFeed(call);
  const ada = (await call('POST', USERS, { email: freshAddress() })).body as UserBody;
  const database = service.database;
  await inDatabase(database, 'UPDATE user_changes_unnumbered SET type = 2, changed = 8192 | 2');
  const { body } = await call('GET', end);
  const known = updatedFields.reduce((bits, { changeBit }) => bits | changeBit, 0);
  await inDatabase(database, `UPDATE user_changes SET changed = ${~known}`);

  expect(body).toEqual([change('user.updated', ada, 1, ['full_name'])]);
  expect((await call('GET', end)).body).toEqual([change('user.updated', ada, 1)]);
});
