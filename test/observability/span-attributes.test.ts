import { expect, inject, test } from 'vitest';
import { isClient, startBuiltHost, startTracedService, traceOfCaller } from '../stage/built-service.ts';
import { lastResponse, requestText } from '../stage/connection.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { addressOf, startProxy } from '../stage/proxy.ts';
import { USERS } from '../stage/responses.ts';
import { until } from '../stage/until.ts';

const service = forAllTests(() => startTracedService());

test.each([
  ['[::1]:8000', '::1', 8000],
  ['api.example.com:8443', 'api.example.com', 8443],
])('server.address is that of the Host header (%s)', async (host, address, port) => {
  const { traceId, headers } = traceOfCaller();
  const fields = { ...headers, Host: host, Connection: 'close' };
  await lastResponse(service.url, requestText('GET /nowhere', fields));
  const [span] = await service.receiver.untilTrace(traceId, 1);

  expect(span?.attributes['server.address']).toBe(address);
  expect(span?.attributes['server.port']).toBe(port);
});

test('the span of a key fetch has neither the query nor personal data of the path', async () => {
  const { origin } = new URL(service.issuer.jwksUri);
  const address = `${origin}/of/jane.doe%2540example.com/keys?key=secret`;
  await forThisTest(startBuiltHost, { ...service.environment, SVC_OAUTH_JWKS_URI: address });
  const span = await until('the span', () =>
    service.receiver.spans().find(({ attributes }) => String(attributes['url.path']).startsWith('/of/')),
  );

  expect(span.attributes).toMatchObject({
    'url.full': `${origin}/of/***/keys`,
    'url.path': '/of/***/keys',
  });
  expect(JSON.stringify(span.attributes)).not.toMatch(/jane|secret/);
});

test('the address in the span of a statement is that of the current host, if there are several', async () => {
  const server = inject('postgres');
  const proxy = await forThisTest(startProxy, server);
  const service = await forThisTest(startTracedService, addressOf(proxy, server));
  const portInUse = async () => {
    const traceId = await until('a read is 200', async () => {
      const { traceId, headers } = traceOfCaller();
      const { status } = await service.call('GET', USERS, undefined, { headers });
      return status === 200 && traceId;
    });
    const spans = await service.receiver.untilTrace(traceId, 2);
    return spans.find(isClient)?.attributes['server.port'];
  };
  const first = await portInUse();
  await proxy.refuse();

  expect(first).toBe(proxy.port);
  await until('the address of the other host', async () => (await portInUse()) === server.port);
});
