import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { beforeAll, describe, expect, test } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import { openApiDocument } from '../../lib/openapi/document.ts';
import { createdFields, type Field, updatedFields } from '../../lib/users/fields.ts';
import { VERSION } from '../../lib/version.ts';
import { USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const ROOT = new URL('../..', import.meta.url);
const UNKNOWN = `${USERS}0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70`;

type Content = { readonly example?: unknown; readonly examples?: Record<string, { value: unknown }> };
type Documented = { readonly content?: Record<string, Content>; readonly links?: object };
type Operation = {
  readonly operationId: string;
  readonly security: readonly Record<string, readonly string[]>[];
  readonly requestBody?: { readonly content: Record<string, Content> };
  readonly responses: Record<string, Documented>;
};

const committed = JSON.parse(readFileSync(new URL('infra/openapi.json', ROOT), 'utf8'));
const operations = Object.values<Record<string, Operation>>(committed.paths).flatMap(
  Object.values<Operation>,
);
const operationOf = (id: string) => operations.find(({ operationId }) => operationId === id) as Operation;

describe('the committed document', { timeout: 300_000 }, () => {
  test('passes redocly lint with the recommended rules, without a warning', async () => {
    const program = 'test/node_modules/@redocly/cli/bin/cli.js';
    const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
    const args = [program, 'lint', 'infra/openapi.json', '--format=json'];
    const report = await promisify(execFile)(process.execPath, args, { cwd: ROOT, env });
    expect(JSON.parse(report.stdout)).toMatchObject({ totals: { errors: 0, warnings: 0, ignored: 0 } });
  });

  test('has every problem of every operation', () => {
    const statuses = operations.map(({ operationId: id, responses }) => [
      id,
      Object.keys(responses).join(' '),
    ]);
    expect(Object.fromEntries(statuses)).toEqual({
      createUser: '201 400 401 403 408 409 410 413 415 422 431 500 503',
      createUsers: '200 201 400 401 403 408 409 410 413 415 422 431 500 503',
      listUsers: '200 400 401 403 408 422 431 500 503',
      getUser: '200 304 400 401 403 404 408 412 422 431 500 503',
      updateUser: '200 400 401 403 404 408 409 412 413 415 422 428 431 500 503',
      deleteUser: '204 400 401 403 404 408 412 422 428 431 500 503',
      listChanges: '200 400 401 403 408 410 422 431 500 503',
      listUserChanges: '200 400 401 403 404 408 410 422 431 500 503',
      health: '200 400 408 431 500',
      ready: '200 400 408 431 500 503',
    });
  });

  test('names the role of an operation as its scope', () => {
    const documented = operations.map(({ operationId, security }) => [operationId, security]);
    // SVC_OAUTH_DELETE_ROLE decides what `users.delete` is.
    const scopeOf = (role: string) => (role === 'users.delete' ? 'users.write' : role);
    const declared = endpoints.map(({ route }) => [
      route.operationId,
      route.role === 'public' ? [] : [{ oauth2: [scopeOf(route.role)] }],
    ]);
    expect(Object.fromEntries(documented)).toEqual(Object.fromEntries(declared));
    expect(committed.components.securitySchemes.oauth2.flows).toEqual({
      clientCredentials: {
        tokenUrl: '/oauth2/token',
        scopes: {
          'users.read': expect.any(String),
          'users.write': expect.any(String),
          'api.superuser': expect.any(String),
        },
      },
    });
  });

  test('links a create to the operations on the created user', () => {
    const linking = operations.flatMap(({ operationId, responses }) =>
      Object.entries(responses).map(([status, { links }]) => [`${operationId} ${status}`, links]),
    );
    const parameters = { user_id: '$response.body#/id' };
    const link = (operationId: string) => ({ operationId, parameters, description: expect.any(String) });
    const linked = ['getUser', 'updateUser', 'deleteUser', 'listUserChanges'];
    expect(linking.filter(([, links]) => links)).toEqual([
      ['createUser 201', Object.fromEntries(linked.map((operationId) => [operationId, link(operationId)]))],
    ]);
  });

  test('has an example of every body', () => {
    const contents = operations.flatMap(({ requestBody, responses }) =>
      [requestBody, ...Object.values(responses)].flatMap((message) => Object.values(message?.content ?? {})),
    );
    const hasExample = ({ example, examples }: Content) => example !== undefined || examples !== undefined;
    expect(contents.length).toBeGreaterThan(0);
    expect(contents.filter((content) => !hasExample(content))).toEqual([]);
  });
});

test('the document has the settings that callers can notice', () => {
  const routes = endpoints.map(({ route }) => route);
  const settings = {
    requestIdHeader: 'X-Trace',
    bodyLimit: 1234,
    oauth: { deleteRole: 'users.write' },
  } as const;
  const document = JSON.stringify(openApiDocument(routes, settings, 'https://issuer.test/token'));
  for (const text of [VERSION, 'https://issuer.test/token', '"X-Trace"', 'must not exceed 1234 bytes']) {
    expect(document).toContain(text);
  }
  expect(document).not.toContain('X-Request-ID');
});

describe('the example of a problem is what the service responds:', () => {
  const service = serviceUnderTest();
  const { call } = service;
  /** The path of a user whose email is taken. It has every field. */
  let user: string;

  beforeAll(async () => {
    const { example } = operationOf('createUser').requestBody?.content['application/json'] ?? {};
    const created = await call('POST', USERS, { ...(example as object), email: 'taken@example.com' });
    user = String(created.headers.location);
  });

  const as = async (...roles: string[]) => ({
    headers: { authorization: `Bearer ${await service.issuer.tokenFor(...roles)}` },
  });

  const wrongQuery =
    'email=-&external_id=&is_active=-&ids=-&created_after=-&created_before=-&sort=-&cursor=-&skip=-&limit=-';
  const withHeader = (name: string, value: string) => ({ headers: { [name]: value } });

  test.for<readonly [id: string, status: number, answer: () => ReturnType<typeof call>]>([
    ['createUser', 400, () => call('GET', `${USERS}%zz`)],
    ['createUser', 401, () => call('POST', USERS, {}, withHeader('authorization', ''))],
    ['createUser', 403, async () => call('POST', USERS, {}, await as('users.read'))],
    ['listUsers', 403, async () => call('GET', USERS, undefined, await as())],
    ['getUser', 404, () => call('GET', UNKNOWN)],
    ['createUser', 409, () => call('POST', USERS, { email: 'TAKEN@example.com' })],
    ['updateUser', 404, () => call('PATCH', UNKNOWN, {})],
    ['updateUser', 412, () => call('PATCH', user, {}, withHeader('if-match', '"999"'))],
    ['createUser', 413, () => call('POST', USERS, { email: 'x'.repeat(70_000) })],
    ['createUser', 415, () => call('POST', USERS, {}, withHeader('content-type', 'text/plain'))],
    [
      'createUser',
      422,
      () => call('POST', USERS, wrongValues(createdFields), withHeader('idempotency-key', 'a,b')),
    ],
    ['listUsers', 422, () => call('GET', `${USERS}?${wrongQuery}`)],
    ['getUser', 422, () => call('GET', `${USERS}-`)],
    ['updateUser', 422, () => call('PATCH', `${USERS}-`, wrongValues(updatedFields))],
    ['health', 431, () => call('GET', '/health', undefined, withHeader('x-long', 'x'.repeat(20_000)))],
  ])('%s with the problem %i', async ([operationId, status, answer]) => {
    const response = await answer();
    const { content } = operationOf(operationId).responses[status] as Documented;
    const [example] = Object.values(content?.['application/problem+json']?.examples ?? {});

    expect(response.status).toBe(status);
    expect(response.body).toEqual({ ...(example?.value as object), instance: expect.any(String) });
  });
});

/** A value for each field that its rule refuses. */
function wrongValues(some: readonly (Pick<Field, 'sqlType'> & { readonly name: string })[]) {
  return Object.fromEntries(
    some.map(({ name, sqlType }) => [name, sqlType === 'text' ? `${'a'.repeat(1000)}@b.com` : {}]),
  );
}
