import { expect, test } from 'vitest';
import { readResponse, refusal, USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();

const signed =
  (...parts: Parameters<typeof service.issuer.sign>) =>
  async () =>
    `Bearer ${await service.issuer.sign(...parts)}`;
const forged = async () => (await signed()()).replace(/[^.]+$/, 'A'.repeat(342));

test.each<[string, RegExp, () => Promise<string> | string | undefined]>([
  ['it has no Authorization', /^there is no Authorization header$/, () => undefined],
  ['it has no bearer token', /no bearer token/, () => 'Basic dXNlcjpwYXNz'],
  ['its token is malformed', /compact form/, () => 'Bearer not-a-token'],
  ['its token is expired', /"exp"/, signed({ exp: 1 })],
  ['its token is not yet valid', /"nbf"/, signed({ nbf: 4e9 })],
  ['its token is without sub', /sub/, signed({ sub: undefined })],
  ['its token is of another issuer', /^unexpected "iss"$/, signed({ iss: 'https://other.example' })],
  ['its token is for another audience', /^unexpected "aud"$/, signed({ aud: 'other' })],
  ['its token is of another type', /typ/, signed({}, { typ: 'id+jwt' })],
  ['its token has a sub of U+0000', /sub holds U\+0000/, signed({ sub: 'svc\0' })],
  ['its token is bound to a key', /bound .*cnf/, signed({ cnf: { jkt: 'x' } })],
  ['its token is of an unknown key', /no key/, signed({}, { kid: 'unknown' })],
  ['its token is forged', /^no key of the identity provider verifies the signature$/, forged],
])(
  'the reason why a request is 401 is in app_error and not in the response: %s',
  async (_, reason, field) => {
    const authorization = await field();
    const headers = { ...(authorization && { authorization }) };
    const response = await readResponse(await fetch(service.url + USERS, { headers }));

    expect(response).toEqual(refusal('unauthorized_error', USERS));
    const events = await service.eventsOf(response);
    expect(events).toMatchObject([
      { event: 'app_error', level: 'warning', status_code: 401, message: expect.stringMatching(reason) },
    ]);
    if (authorization) expect(JSON.stringify(events)).not.toContain(authorization.split(' ')[1]);
  },
);
