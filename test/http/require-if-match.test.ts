import { expect, test } from 'vitest';
import { forbidden, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest(() => ({ SVC_REQUIRE_IF_MATCH: 'yes' }));
const { createUser } = service;

const call = (method: string, path: string, init: RequestInit = {}) =>
  service.call(method, path, undefined, init);

test.each(['PATCH', 'DELETE'])('%s without If-Match is 428, before its body is checked', async (method) => {
  const path = `${USERS}42`;
  const body = method === 'PATCH' ? { body: 'x'.repeat(70_000) } : {};

  expect(await call(method, path, body)).toEqual(refusal('precondition_required_error', path));
  expect(await call(method, path, { ...body, headers: { 'if-none-match': '"1"' } })).toEqual(
    refusal('precondition_required_error', path),
  );
});

test('a token without the role is 403 first', async () => {
  const authorization = `Bearer ${await service.issuer.sign({ roles: ['users.read'] })}`;

  expect(await call('DELETE', `${USERS}42`, { headers: { authorization } })).toEqual(
    forbidden('users.write', `${USERS}42`),
  );
});

test('If-Match is checked as usual, and an empty one is not satisfied', async () => {
  const path = USERS + (await createUser()).id;

  expect((await call('DELETE', path, { headers: { 'if-match': '' } })).status).toBe(412);
  expect((await call('DELETE', path, { headers: { 'if-match': '*' } })).status).toBe(204);
});

test('reads need no If-Match', async () => {
  expect((await call('GET', USERS)).status).toBe(200);
});
