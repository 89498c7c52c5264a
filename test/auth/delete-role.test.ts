import { describe, expect, test } from 'vitest';
import { BATCH, forbidden, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const as = async ({ issuer }: ReturnType<typeof serviceUnderTest>, ...roles: string[]) => ({
  headers: { authorization: `Bearer ${await issuer.tokenFor(...roles)}` },
});

describe('with SVC_OAUTH_DELETE_ROLE=users.delete', () => {
  const service = serviceUnderTest(() => ({
    SVC_OAUTH_DELETE_ROLE: 'users.delete',
    SVC_ENV: 'development',
  }));
  const { call, createUser } = service;

  test('a token that has only users.write gets 403 with scope="users.delete"', async () => {
    const { id } = await createUser();

    for (const roles of [['users.write'], ['users.read', 'users.write'], ['users.read'], []])
      expect(await call('DELETE', USERS + id, undefined, await as(service, ...roles))).toEqual(
        forbidden('users.delete', USERS + id),
      );
    expect((await call('GET', USERS + id)).status).toBe(200);
  });

  test.each(['users.delete', 'api.superuser'])('%s deletes', async (role) => {
    const { id } = await createUser();

    expect((await call('DELETE', USERS + id, undefined, await as(service, role))).status).toBe(204);
  });

  test('users.delete gives no other right', async () => {
    const init = await as(service, 'users.delete');
    const { id } = await createUser();
    for (const line of [
      ...[`GET ${USERS}`, `GET ${USERS}${id}`, `GET ${USERS}changes`, `GET ${USERS}${id}/changes`],
      ...[`POST ${USERS}`, `POST ${BATCH}`, `PATCH ${USERS}${id}`],
    ]) {
      const [method = '', path = ''] = line.split(' ');
      const [role, body] = method === 'GET' ? ['users.read'] : ['users.write', {}];
      expect(await call(method, path, body, init)).toEqual(forbidden(role, path));
    }
  });

  test("the instance's OpenAPI document names the role", async () => {
    const { paths, components } = JSON.parse(await (await fetch(`${service.url}/openapi.json`)).text());
    const { delete: remove, patch } = paths['/api/v1/users/{user_id}'];
    const { schema } = remove.responses['403'].headers['WWW-Authenticate'];
    const { scopes } = components.securitySchemes.oauth2.flows.clientCredentials;

    expect([remove.security, patch.security]).toEqual([
      [{ oauth2: ['users.delete'] }],
      [{ oauth2: ['users.write'] }],
    ]);
    expect(remove.description).toContain('`users.delete`');
    expect(schema.enum).toEqual(['Bearer error="insufficient_scope", scope="users.delete"']);
    expect(Object.keys(scopes)).toEqual(['users.read', 'users.write', 'users.delete', 'api.superuser']);
  });
});

describe('without SVC_OAUTH_DELETE_ROLE', () => {
  const service = serviceUnderTest();

  test('users.delete does not delete', async () => {
    const path = USERS + (await service.createUser()).id;

    expect(await service.call('DELETE', path, undefined, await as(service, 'users.delete'))).toEqual(
      forbidden('users.write', path),
    );
  });
});
