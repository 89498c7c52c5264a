import { describe, expect, test } from 'vitest';
import { readSettings } from '../../lib/settings/settings.ts';
import { BATCH, forbidden, refusal, USERS, type UserBody } from '../stage/responses.ts';
import { environmentOf } from '../stage/service.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const UNKNOWN = `${USERS}00000000-0000-0000-0000-000000000000`;

type Service = ReturnType<typeof serviceUnderTest>;

const as = async ({ issuer }: Service, ...roles: string[]) => ({
  headers: { authorization: `Bearer ${await issuer.tokenFor(...roles)}` },
});

const documentOf = async ({ url }: Service) => {
  const { paths, components } = JSON.parse(await (await fetch(`${url}/openapi.json`)).text());
  const { delete: remove, patch } = paths['/api/v1/users/{user_id}'];
  return {
    roles: [remove.security, patch.security],
    description: remove.description,
    challenge: remove.responses['403'].headers['WWW-Authenticate'].schema.enum,
    scopes: Object.keys(components.securitySchemes.oauth2.flows.clientCredentials.scopes),
  };
};

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
    const { roles, description, challenge, scopes } = await documentOf(service);

    expect(roles).toEqual([[{ oauth2: ['users.delete'] }], [{ oauth2: ['users.write'] }]]);
    expect(description).toContain('`users.delete`');
    expect(challenge).toEqual(['Bearer error="insufficient_scope", scope="users.delete"']);
    expect(scopes).toEqual(['users.read', 'users.write', 'users.delete', 'api.superuser']);
  });
});

describe('without SVC_OAUTH_DELETE_ROLE', () => {
  const service = serviceUnderTest(() => ({ SVC_ENV: 'development' }));
  const { call, createUser } = service;

  test('users.write deletes, and users.delete is 403', async () => {
    const { id }: UserBody = await createUser();

    expect(await call('DELETE', USERS + id, undefined, await as(service, 'users.delete'))).toEqual(
      forbidden('users.write', USERS + id),
    );
    expect((await call('DELETE', USERS + id, undefined, await as(service, 'users.write'))).status).toBe(204);
    expect(await call('DELETE', UNKNOWN)).toEqual(refusal('not_found_error', UNKNOWN));
    expect((await documentOf(service)).scopes).toEqual(['users.read', 'users.write', 'api.superuser']);
  });

  test('any other value is refused at start', () => {
    for (const role of ['users.read', 'api.superuser', 'users.delete,users.write'])
      expect(() =>
        readSettings({ ...environmentOf(service.database, service.issuer), SVC_OAUTH_DELETE_ROLE: role }),
      ).toThrow(/SVC_OAUTH_DELETE_ROLE is not valid: it accepts/);
  });
});
