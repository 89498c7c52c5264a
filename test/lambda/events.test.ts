import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { type LambdaFunction, startFunction } from '../stage/lambda-function.ts';
import { refusal, responseFromResult, type ServiceResponse, USERS, UUID_4 } from '../stage/responses.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';

const ID = '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';

let stage: Awaited<ReturnType<typeof startComposition>>;
const instances = new Map<string, LambdaFunction>();

beforeAll(async () => {
  stage = await startComposition();
  const environment = environmentOf(stage.database, stage.issuer);
  for (const name of ['getUser', 'listUsers', 'health', 'unmatched']) {
    instances.set(name, await startFunction(name, environment));
  }
});

afterAll(async () => {
  await Promise.all([...instances.values()].map((instance) => instance.stop()));
  await stage.stop();
});

async function call(name: string, event: unknown): Promise<ServiceResponse> {
  return responseFromResult(await (instances.get(name) as LambdaFunction).call(event));
}

/** The event of `events/`, as an object that a test can change. */
async function given(name: string): Promise<Record<string, unknown>> {
  return { ...(await eventOf(name, { token: await stage.issuer.sign() })) };
}

describe('an event is accepted', () => {
  test.each([
    ['without pathParameters', { pathParameters: undefined }],
    ['with pathParameters that are null', { pathParameters: null }],
    ['with pathParameters of a catch-all', { pathParameters: { proxy: `api/v1/users/${ID}` } }],
    ['of a stage with a name', { rawPath: `/prod${USERS}${ID}`, stage: 'prod' }],
    ['of a stage with a name, at a domain of its own', { stage: 'prod' }],
    ['with a base path', { rawPath: `/mapped${USERS}${ID}` }, `/mapped${USERS}${ID}`],
    ['without rawQueryString and isBase64Encoded', { rawQueryString: undefined, isBase64Encoded: undefined }],
    ['without rawPath', { rawPath: undefined }],
  ])('%s', async (_case, { stage: named, ...spoilt }: Record<string, unknown>, instance = USERS + ID) => {
    const event = await given('getUser');
    const requestContext = { ...(event.requestContext as object), stage: named ?? '$default' };

    const response = await call('getUser', { ...event, ...spoilt, requestContext });

    expect(response).toEqual(refusal('not_found_error', instance));
  });

  test('with header names in any case, as emulators send them', async () => {
    const event = await given('getUser');
    const { authorization } = event.headers as Record<string, string>;
    const headers = { AUTHORIZATION: authorization, 'X-Request-Id': 'call-1' };

    const response = await call('getUser', { ...event, headers });
    const twice = await call('getUser', { ...event, headers: { ...headers, 'x-request-ID': 'and-2' } });

    expect(response).toMatchObject({ status: 404, headers: { 'x-request-id': 'call-1' } });
    expect(twice).toMatchObject({ status: 404, headers: { 'x-request-id': expect.stringMatching(UUID_4) } });
  });

  test('with queryStringParameters only', async () => {
    const event = await given('listUsers');
    const spoilt = { rawQueryString: undefined, queryStringParameters: { limit: '0' } };

    expect(await call('listUsers', { ...event, ...spoilt })).toEqual(
      refusal('validation_error', USERS, { errors: 'any' }),
    );
  });

  test('of a named stage, and no endpoint responds', async () => {
    const event = await given('refusals/404-unknown-path');
    const requestContext = { http: { method: 'OPTIONS' }, stage: 'prod' };

    const response = await call('unmatched', { ...event, rawPath: `/prod${USERS}`, requestContext });

    expect(response).toMatchObject({ status: 204, headers: { allow: 'POST, GET, HEAD, OPTIONS' } });
  });
});

describe('an incomplete event gets a response', () => {
  test.each([
    ['nothing at all', null],
    ['an empty object', {}],
    ['members that are null', { rawPath: null, headers: null, requestContext: null, body: null }],
    ['an empty request context', { rawPath: '/', headers: {}, requestContext: {} }],
    ['a path that is not well-formed text', { rawPath: '/\ud800' }],
    ['a path that is not text', { rawPath: ['/'] }],
    ['a body that is not text', { body: { email: 'ada@example.com' } }],
  ])('%s', async (_case, event) => {
    expect(await call('getUser', event)).toMatchObject({ status: 401 });
    expect(await call('health', event)).toMatchObject({ status: 200, body: { status: 'healthy' } });
  });

  test('a path that is not valid percent-encoded UTF-8 is 400 for any caller', async () => {
    const rawPath = `${USERS}%E0%A4%A`;

    expect(await call('getUser', { rawPath })).toEqual(refusal('bad_request_error', rawPath));
  });
});

test('a hanging key server delays no response beyond the time limit of the invocation', async () => {
  const provider = await startIssuer();
  provider.answer(() => {});
  const environment = {
    ...environmentOf(stage.database, stage.issuer),
    SVC_OAUTH_JWKS_URI: provider.jwksUri,
  };
  const instance = await startFunction('getUser', environment);
  const event = await given('getUser');
  await instance.call({});

  const begun = performance.now();
  const response = responseFromResult(await instance.call(event, { seconds: 1.5 }));
  const waited = performance.now() - begun;
  await instance.stop();
  await provider.stop();

  expect(response).toEqual(refusal('service_unavailable_error', USERS + ID));
  expect(waited).toBeLessThan(1500);
});
