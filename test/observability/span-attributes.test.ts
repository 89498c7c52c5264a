import { once } from 'node:events';
import { get } from 'node:http';
import { beforeAll, describe, expect, inject, onTestFinished, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import { startBuiltHost } from '../stage/built-host.ts';
import { connectTo, written } from '../stage/connection.ts';
import { USERS } from '../stage/responses.ts';
import { isClient, startTracedService, type TracedService, traceOfCaller } from '../stage/traced-service.ts';
import { until } from '../stage/until.ts';

describe('the attributes of spans', () => {
  let service: TracedService;

  beforeAll(async () => {
    service = await startTracedService();
    return () => service.remove();
  });

  /** A request whose Host header can have any value. */
  async function send(path: string, headers: Readonly<Record<string, string>>): Promise<void> {
    const request = get(service.url + path, { headers });
    const [response] = await once(request, 'response');
    response.resume();
  }

  test.each([
    ['[::1]:8000', '::1', 8000],
    ['api.example.com', 'api.example.com', undefined],
    ['api.example.com:8443', 'api.example.com', 8443],
  ])('server.address is that of the Host header (%s)', async (host, address, port) => {
    const { traceId, headers } = traceOfCaller();
    await send('/nowhere', { ...headers, host });
    const [span] = await service.receiver.untilTrace(traceId, 1);

    expect(span?.attributes['server.address']).toBe(address);
    expect(span?.attributes['server.port']).toBe(port);
  });

  test('an unknown method is _OTHER, and http.request.method_original has it', async () => {
    const { traceId, headers } = traceOfCaller();
    const { hostname, port } = new URL(service.url);
    const connection = await connectTo(service.url);
    connection.send(
      `PROPFIND ${USERS} HTTP/1.1\r\nHost: ${hostname}:${port}\r\ntraceparent: ${headers.traceparent}\r\n\r\n`,
    );
    const { status } = await connection.answer();
    connection.close();
    const [span] = await service.receiver.untilTrace(traceId, 1);

    expect(status).toBe(405);
    expect(span).toMatchObject({
      name: 'HTTP',
      attributes: { 'http.request.method': '_OTHER', 'http.request.method_original': 'PROPFIND' },
    });
  });

  test.each([
    ['the path', `${USERS}jane.doe@example.com`, {}],
    ['the path, in escapes', `${USERS}jane%2Edoe%40example.com`, {}],
    ['the query', `${USERS}?email=jane.doe@example.com`, {}],
    ['the User-Agent', USERS, { 'user-agent': 'billing/1.0 (+mailto:jane.doe@example.com)' }],
    ['the Host', USERS, { host: 'jane.doe@example.com' }],
  ])('an email in %s is in no attribute', async (_case, path, given) => {
    const { traceId, headers } = traceOfCaller();
    await send(path, { ...headers, ...given });
    const spans = await service.receiver.untilTrace(traceId, 1);

    const exported = JSON.stringify(spans, (_, value) => (typeof value === 'bigint' ? undefined : value));
    expect(exported).toContain(traceId);
    expect(exported).not.toMatch(/doe(@|%40)example/);
  });

  test('a User-Agent keeps its words without emails and tokens', async () => {
    const { traceId, headers } = traceOfCaller();
    await send(USERS, { ...headers, 'user-agent': 'billing/1.0 (+mailto:jane.doe%2540example.com) linux' });
    const [span] = await service.receiver.untilTrace(traceId, 1);

    expect(span?.attributes['user_agent.original']).toBe('billing/1.0 *** linux');
  });

  test('the span of a key fetch has neither the query nor personal data of the path', async () => {
    const { origin } = new URL(service.issuer.jwksUri);
    const address = `${origin}/of/jane.doe%2540example.com/keys?key=secret`;
    const other = await startBuiltHost({ ...service.environment, SVC_OAUTH_JWKS_URI: address });
    const span = await until('the span', () =>
      service.receiver.spans().find(({ attributes }) => String(attributes['url.path']).startsWith('/of/')),
    );
    await other.remove();

    expect(span.attributes).toMatchObject({
      'url.full': `${origin}/of/***/keys`,
      'url.path': '/of/***/keys',
    });
    expect(JSON.stringify(span.attributes)).not.toMatch(/jane|secret/);
  });

  test('a token is in no attribute, neither from path, User-Agent nor Host', async () => {
    const { traceId, headers } = traceOfCaller();
    const token = await service.issuer.sign();
    const connection = await connectTo(service.url);
    connection.send(
      written(`PUT /api/v1/users/access_token=${token}`, [
        ['Host', token],
        ['User-Agent', token],
        ['traceparent', headers.traceparent],
      ]),
    );
    const { status } = await connection.answer();
    connection.close();
    const [span] = await service.receiver.untilTrace(traceId, 1);

    expect(status).toBe(405);
    expect(span?.attributes).toMatchObject({
      'url.path': '/api/v1/users/***',
      'user_agent.original': '***',
      'server.address': '***',
    });
  });
});

test('the address in the span of a statement is that of the current host, if there are several', async () => {
  const { host, port } = inject('postgres');
  const service = await startTracedService({
    SVC_POSTGRES_HOST: `127.0.0.1,${host}`,
    SVC_POSTGRES_PORT: `${await freePort()},${port}`,
  });
  onTestFinished(() => service.remove());
  const { traceId, headers } = traceOfCaller();
  await service.call('GET', USERS, undefined, { headers });
  const spans = await service.receiver.untilTrace(traceId, 2);

  expect(spans.find(isClient)?.attributes).toMatchObject({ 'server.address': host, 'server.port': port });
});
