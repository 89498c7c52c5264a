import { expect, test } from 'vitest';
import { readResponse, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();

/** Sends a request with this field value of Authorization, or without one, and expects its refusal. */
async function expectReason(authorization: string | undefined, reason: RegExp): Promise<void> {
  const headers = { ...(authorization && { authorization }) };
  const response = await readResponse(await fetch(service.url + USERS, { headers }));

  expect(response).toEqual(refusal('unauthorized_error', USERS));
  const events = await service.eventsOf(response);
  expect(events).toMatchObject([
    { event: 'app_error', level: 'warning', status_code: 401, message: expect.stringMatching(reason) },
  ]);
  if (authorization) expect(JSON.stringify(events)).not.toContain(authorization.split(' ')[1]);
}

test.each<[string, string | undefined, RegExp]>([
  ['no Authorization', undefined, /^there is no Authorization header$/],
  ['no bearer token', 'Basic dXNlcjpwYXNz', /no bearer token/],
  ['malformed', 'Bearer not-a-token', /compact form/],
])(
  'the reason of a refusal is in the message of app_error and not in the response: %s',
  async (_case, authorization, reason) => {
    await expectReason(authorization, reason);
  },
);

const forged = (token: string) => `${token.slice(0, token.lastIndexOf('.'))}.${'A'.repeat(342)}`;

test.each<[string, Parameters<typeof service.issuer.sign>, RegExp, ((token: string) => string)?]>([
  ['expired', [{ exp: 1 }], /"exp"/],
  ['not yet valid', [{ nbf: 4e9 }], /"nbf"/],
  ['without sub', [{ sub: undefined }], /sub/],
  ['of another issuer', [{ iss: 'https://other.example' }], /^unexpected "iss"$/],
  ['for another audience', [{ aud: 'other' }], /^unexpected "aud"$/],
  ['of another type', [{}, { typ: 'id+jwt' }], /typ/],
  ['with a sub of U+0000', [{ sub: 'svc\0' }], /sub holds U\+0000/],
  ['bound to a key', [{ cnf: { jkt: 'x' } }], /bound .*cnf/],
  ['of an unknown key', [{}, { kid: 'unknown' }], /no key/],
  ['forged', [], /^no key of the identity provider verifies the signature$/, forged],
])(
  'the reason of a refusal is in the message of app_error and not in the response: the token is %s',
  async (_case, parts, reason, change = (token) => token) => {
    await expectReason(`Bearer ${change(await service.issuer.sign(...parts))}`, reason);
  },
);
