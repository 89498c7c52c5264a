import { describe, expect, test } from 'vitest';
import { lastResponse, requestText } from '../stage/connection.ts';
import { probe, readResponse, refusal, USERS } from '../stage/responses.ts';
import { startService, startSurroundings } from '../stage/service.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { until } from '../stage/until.ts';

const service = serviceUnderTest();
const token = () => service.authorization.slice('Bearer '.length);

const send = (line: string, fields: Record<string, string>, body?: string) =>
  lastResponse(service.url, requestText(line, { ...fields, Connection: 'close' }, body));

test('one Authorization header with a good token is accepted', async () => {
  expect(await send(`GET ${USERS}`, { Authorization: `Bearer ${token()}` })).toMatchObject({ status: 200 });
  expect(await send(`GET ${USERS}`, { aUTHORIZATION: `bEARER  ${token()}` })).toMatchObject({ status: 200 });
});

test.each([
  ['a valid one and an invalid one', () => [service.authorization, 'Bearer no.such.token']],
  ['a valid one and Basic', () => [service.authorization, 'Basic YTpi']],
  ['a valid one and an empty one', () => [service.authorization, '']],
  ['two halves of one', () => ['Bearer', token()]],
])('two Authorization headers are 401: %s', async (_case, values) => {
  const [Authorization = '', authorization = ''] = values();
  const response = await send(`GET ${USERS}`, { Authorization, authorization });

  expect(response).toEqual(refusal('unauthorized_error', USERS));
});

describe('a token is ignored', () => {
  test.each(['access_token', 'token', 'authorization', 'Authorization'])(
    'in the query, as %s',
    async (name) => {
      const response = await send(`GET ${USERS}?${name}=${token()}`, {});

      expect(response).toEqual(refusal('unauthorized_error', USERS));
    },
  );

  test.each(['Proxy-Authorization', 'X-Authorization', 'X-Access-Token', 'Cookie', 'Authentication'])(
    'in the header %s',
    async (name) => {
      const value = name === 'Cookie' ? `access_token=${token()}` : service.authorization;

      expect(await send(`GET ${USERS}`, { [name]: value })).toEqual(refusal('unauthorized_error', USERS));
    },
  );

  test.each([
    ['application/x-www-form-urlencoded', () => `access_token=${token()}`],
    ['application/json', () => JSON.stringify({ access_token: token(), email: 'ada@example.com' })],
  ])('in a body of %s', async (type, body) => {
    const response = await send(`POST ${USERS}`, { 'Content-Type': type }, body());

    expect(response).toEqual(refusal('unauthorized_error', USERS));
  });
});

// These two wait for seconds, so they run concurrently.
test.concurrent('the service follows the rotation of keys', async ({ onTestFinished }) => {
  const { issuer, call, stop } = await startService();
  onTestFinished(stop);
  const before = { headers: { authorization: `Bearer ${await issuer.sign()}` } };
  expect((await call('GET', USERS, undefined, before)).status).toBe(200);
  await issuer.rotate('ES256');

  // Two seconds, plus a margin for a busy machine.
  const isAccepted = async () => (await call('GET', USERS)).status === 200;
  await until('the new key is accepted', isAccepted, { seconds: 3.5 });
  const response = await call('GET', USERS, undefined, before);

  expect(response).toEqual(refusal('unauthorized_error', USERS));
});

test.concurrent('the service starts while the identity provider is unavailable, and recovers by itself', async ({
  onTestFinished,
}) => {
  const surroundings = await startSurroundings();
  onTestFinished(surroundings.stop);
  const { issuer } = surroundings;
  const headers = { authorization: `Bearer ${await issuer.sign()}` };
  await issuer.stop();
  // /ready does not depend on the identity provider.
  const { url, stop } = await startService({}, surroundings);
  onTestFinished(stop);
  const ask = async (path: string) => readResponse(await fetch(`${url}${path}`, { headers }));

  expect(await ask('/ready')).toEqual(probe('ready'));
  expect(await ask('/health')).toEqual(probe('healthy'));
  expect(await ask(USERS)).toEqual(refusal('service_unavailable_error', USERS));
  const unformed = await fetch(`${url}${USERS}`, { headers: { authorization: 'Bearer no.such.token' } });
  expect(await readResponse(unformed)).toEqual(refusal('unauthorized_error', USERS));

  await issuer.restart();
  await until('the token is accepted', async () => (await ask(USERS)).status === 200, { seconds: 15 });
});
