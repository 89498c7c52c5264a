import { describe, expect, test } from 'vitest';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { type LambdaFunction, startFunction } from '../stage/lambda-function.ts';
import {
  freshAddress,
  refusal,
  responseFromResult,
  type ServiceResponse,
  USERS,
  type UserBody,
  UUID_4,
} from '../stage/responses.ts';
import { startIssuer } from '../stage/tokens.ts';
import { timed } from '../stage/until.ts';

const ID = '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';

const composition = forAllTests(() => startComposition());
const instances = Object.fromEntries(
  ['createUser', 'getUser', 'listUsers', 'listChanges', 'health', 'unmatched'].map((name) => [
    name,
    forAllTests(() => startFunction(name, composition.environment)),
  ]),
);

async function call(name: string, event: unknown): Promise<ServiceResponse> {
  return responseFromResult(await (instances[name] as LambdaFunction).call(event));
}

/** The event of `events/`, as an object that a test can change. */
async function given(name: string): Promise<Record<string, unknown>> {
  return { ...(await eventOf(name, { token: await composition.issuer.sign() })) };
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

describe('Location and Link begin with what stands before /api/v1/', () => {
  test.each([
    ['a stage', '/prod', '/prod', 'prod'],
    ['a base path of two segments', '/people/v2.0_~-', '/people/v2.0_~-'],
    ['a base path like the own path', '/api/v1', '/api/v1'],
    ['nothing', '', ''],
    ['an authority is left out', '//example.com', ''],
    ['a path without its slash is left out', 'prod', ''],
    ['other characters are left out', '/a%20b', ''],
    ['characters that end a link are left out', '/a>; rel="next", <', ''],
    ['decoded characters are left out', '/é', ''],
  ])('%s', async (_case, given, expected, stage = '$default') => {
    const token = await composition.issuer.sign();
    const at = async (name: string) => {
      const event = await eventOf(name, { token, body: JSON.stringify({ email: freshAddress() }) });
      const requestContext = { ...event.requestContext, stage };
      return { ...event, rawPath: given + event.rawPath, requestContext };
    };
    const ofContext = await at('listChanges');
    const http = { method: 'GET', path: ofContext.rawPath };

    const created = await call('createUser', await at('createUser'));
    const again = await call('createUser', await at('createUser'));
    const listed = await call('listUsers', { ...(await at('listUsers')), rawQueryString: 'limit=1' });
    const changes = await call('listChanges', {
      ...ofContext,
      rawPath: undefined,
      requestContext: { http, stage },
    });

    expect([created.status, again.status]).toEqual([201, 201]);
    expect(created.headers.location).toBe(`${expected}${USERS}${(created.body as UserBody).id}`);
    expect(listed.headers.link).toMatch(new RegExp(`^<${expected}${USERS}\\?[^<>]+>; rel="next"$`));
    expect(changes.headers.link).toMatch(new RegExp(`^<${expected}${USERS}changes\\?[^<>]+>; rel="next"$`));
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
  const provider = await forThisTest(startIssuer);
  provider.answer(() => {});
  const environment = { ...composition.environment, SVC_OAUTH_JWKS_URI: provider.jwksUri };
  const instance = await forThisTest(startFunction, 'getUser', environment);
  const event = await given('getUser');
  await instance.call({});

  const { value, milliseconds } = await timed(instance.call(event, { seconds: 1.5 }));

  expect(responseFromResult(value)).toEqual(refusal('service_unavailable_error', USERS + ID));
  expect(milliseconds).toBeLessThan(1500);
});
