import { generateKeyPair } from 'jose';
import { describe, expect, test } from 'vitest';
import { refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

describe('the reason of a refused token', () => {
  const service = serviceUnderTest();

  const seconds = (fromNow: number) => Math.floor(Date.now() / 1000) + fromNow;

  const bearer = async (token: Promise<string>) => `Bearer ${await token}`;

  /** A token with the kid of a known key, signed by a key that the provider never had. */
  async function forged({ issuer }: typeof service): Promise<string> {
    const { privateKey } = await generateKeyPair('RS256');
    const key = issuer.keys[0];
    if (!key) throw new Error('the issuer has no key');
    return bearer(issuer.sign({}, {}, { key: { ...key, privateKey } }));
  }

  test.each<[string, (from: typeof service) => Promise<string>, RegExp]>([
    ['no bearer token', async () => 'Basic dXNlcjpwYXNz', /no bearer token/],
    ['malformed', async () => 'Bearer not-a-token', /compact form/],
    ['expired', ({ issuer }) => bearer(issuer.sign({ exp: seconds(-10) })), /"exp"/],
    ['not yet valid', ({ issuer }) => bearer(issuer.sign({ nbf: seconds(60) })), /"nbf"/],
    ['without sub', ({ issuer }) => bearer(issuer.sign({ sub: undefined as never })), /sub/],
    [
      'of another issuer',
      ({ issuer }) => bearer(issuer.sign({ iss: 'https://other.example' })),
      /^unexpected "iss"$/,
    ],
    ['for another audience', ({ issuer }) => bearer(issuer.sign({ aud: 'other' })), /^unexpected "aud"$/],
    ['of another type', ({ issuer }) => bearer(issuer.sign({}, { typ: 'id+jwt' })), /typ/],
    ['with a sub of U+0000', ({ issuer }) => bearer(issuer.sign({ sub: 'svc\0' })), /sub holds U\+0000/],
    ['bound to a key', ({ issuer }) => bearer(issuer.sign({ cnf: { jkt: 'x' } })), /bound .*cnf/],
    ['of an unknown key', ({ issuer }) => bearer(issuer.sign({}, { kid: 'unknown' })), /no key/],
    ['forged', forged, /^no key of the identity provider verifies the signature$/],
  ])('is in the message of app_error and not in the response: %s', async (_case, authorizationOf, reason) => {
    const authorization = await authorizationOf(service);
    const response = await service.call('GET', USERS, undefined, { headers: { authorization } });
    const requestId = response.headers['x-request-id'];

    expect(response).toEqual(refusal('unauthorized_error', USERS));
    const events = (await service.events()).filter(({ request_id }) => request_id === requestId);
    expect(events).toMatchObject([
      { event: 'app_error', level: 'warning', status_code: 401, message: expect.stringMatching(reason) },
    ]);
    expect(JSON.stringify(events)).not.toContain(authorization.split(' ')[1]);
  });

  test('is in the message of app_error also if there is no token', async () => {
    const response = await fetch(service.url + USERS);
    const requestId = response.headers.get('x-request-id');

    expect(response.status).toBe(401);
    const events = (await service.events()).filter(({ request_id }) => request_id === requestId);
    expect(events).toMatchObject([{ message: 'there is no Authorization header', status_code: 401 }]);
  });
});
