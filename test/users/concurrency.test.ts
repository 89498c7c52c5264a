import { expect, test } from 'vitest';
import { type ChangeBody, endOfFeed } from '../stage/changes.ts';
import { freshAddress, refusal, success, USERS, type UserBody, user } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { times } from '../stage/until.ts';

const { call, createUser } = serviceUnderTest();

test('of 100 concurrent creates with one email, one is 201 and 99 are 409', async () => {
  const email = freshAddress();
  const inSomeCase = (index: number) => (index % 2 === 0 ? email : email.toUpperCase());

  const responses = await times(100, (index) => call('POST', USERS, { email: inSomeCase(index) }));

  const created = responses.filter(({ status }) => status === 201);
  const refused = responses.filter(({ status }) => status !== 201);
  expect(created).toHaveLength(1);
  expect(refused).toEqual(Array(99).fill(refusal('conflict_error', USERS)));
  const list = (await call('GET', USERS)).body as UserBody[];
  expect(list.filter((user) => user.email.toLowerCase() === email)).toEqual([created[0]?.body]);
});

test('concurrent creates each return their own user and have their own change, and a taken email is 409', async () => {
  const taken = (await createUser()).email;
  const head = await endOfFeed(call);
  const bodies = Array.from({ length: 60 }, (_, index) => ({
    email: index % 6 === 5 ? taken.toUpperCase() : freshAddress(),
    full_name: index % 7 === 0 ? null : `"Name" \\${index}, {é}`,
  }));

  const responses = await Promise.all(bodies.map((body) => call('POST', USERS, body)));

  expect(responses).toEqual(
    bodies.map((body) =>
      body.email === taken.toUpperCase()
        ? refusal('conflict_error', USERS)
        : success(201, user(body), { etag: '"1"', location: expect.any(String) }),
    ),
  );
  const created = responses.filter(({ status }) => status === 201).map(({ body }) => (body as UserBody).id);
  const changes = (await call('GET', head)).body as readonly ChangeBody[];
  expect(changes.map(({ type, subject }) => `${type} ${subject}`).sort()).toEqual(
    created.map((id) => `user.created ${id}`).sort(),
  );
});

test('of 20 users that take one email at once, one gets it', async () => {
  const users = await times(20, () => createUser());
  const email = freshAddress();

  const responses = await Promise.all(users.map(({ id }) => call('PATCH', USERS + id, { email })));

  const statuses = responses.map(({ status }) => status).sort();
  expect(statuses).toEqual([200, ...Array(19).fill(409)]);
});

test('two concurrent updates of different fields both take effect', async () => {
  for (let round = 0; round < 40; round += 1) {
    const given = await createUser();
    const path = USERS + given.id;
    const email = freshAddress();
    const changes = [{ full_name: `name ${round}` }, { is_active: false }, { email }];

    const responses = await Promise.all(changes.map((change) => call('PATCH', path, change)));

    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200]);
    const expected = { ...given, email, full_name: `name ${round}`, is_active: false };
    expect((await call('GET', path)).body).toEqual({ ...expected, updated_at: expect.any(String) });
  }
});

test('two users that swap their emails at once get a response each, and no 5xx', async () => {
  for (let round = 0; round < 20; round += 1) {
    const [first, second] = [await createUser(), await createUser()];

    const responses = await Promise.all([
      call('PATCH', USERS + first.id, { email: second.email }),
      call('PATCH', USERS + second.id, { email: first.email }),
    ]);

    for (const { status } of responses) expect([200, 409]).toContain(status);
  }
});

test('of ten concurrent deletes one is 204 and the others are 404', async () => {
  const { id } = await createUser();

  const responses = await times(10, () => call('DELETE', USERS + id));

  const deleted = responses.filter(({ status }) => status === 204);
  const others = responses.filter(({ status }) => status !== 204);
  expect(deleted).toEqual([success(204, '')]);
  expect(others).toEqual(Array(9).fill(refusal('not_found_error', USERS + id)));
});

test('a user is deleted after an update and a delete at once', async () => {
  const { id } = await createUser();

  const [updated, deleted] = await Promise.all([
    call('PATCH', USERS + id, { full_name: 'x' }),
    call('DELETE', USERS + id),
  ]);

  expect([200, 404]).toContain(updated.status);
  expect(deleted.status).toBe(204);
  expect((await call('GET', USERS + id)).status).toBe(404);
});

test('concurrent lookups each find the user with their own email or external id', async () => {
  // These begin alike in lower case for JavaScript, and are two addresses for PostgreSQL.
  const starts = ['İ', 'i\u0307'];
  const users = await times(40, (index) =>
    createUser({ email: `${starts[index % 2]}${freshAddress()}`, external_id: `hr-${crypto.randomUUID()}` }),
  );
  const lookups = users.flatMap(({ email, external_id = '' }, index) => [
    { filter: 'email', value: email, found: [users[index]] },
    { filter: 'email', value: email.replace('@', '-other@'), found: [] },
    { filter: 'external_id', value: external_id, found: [users[index]] },
    { filter: 'external_id', value: external_id.toUpperCase(), found: [] },
  ]);

  const responses = await Promise.all(
    lookups.map(({ filter, value }) => call('GET', `${USERS}?${filter}=${encodeURIComponent(value)}`)),
  );

  expect(responses).toEqual(lookups.map(({ found }) => success(200, found)));
});
