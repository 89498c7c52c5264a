import { beforeAll, describe, test } from 'vitest';
import { forged, goodParts, rs256 } from '../stage/forge.ts';
import { type Gate, startGate } from '../stage/gate.ts';
import { until } from '../stage/until.ts';

let gate: Gate;

beforeAll(async () => {
  gate = await startGate();
  return () => gate.stop();
});

const now = () => Math.floor(Date.now() / 1000);
const signed = (claims: Record<string, unknown>, header = {}) => gate.issuer.sign(claims, header);

/** A good signature of a header and a payload that no library would write. */
function signedRaw(change: (json: { header: string; claims: string }) => { header: string; claims: string }) {
  const { key, header, claims } = goodParts(gate);
  const changed = change({ header: JSON.stringify(header), claims: JSON.stringify(claims) });
  return forged(changed.header, changed.claims, rs256(key));
}

/** A good signature of a payload that is not the JSON of any object. */
const signedClaims = (change: (claims: string) => string) =>
  signedRaw(({ header, claims }) => ({ header, claims: change(claims) }));

test('a token with exactly the required claims is accepted', async () => {
  const { issuer, audience } = gate.issuer;
  const least = { iss: issuer, aud: audience, sub: 'svc', roles: ['users.read'], iat: undefined };

  await gate.expectAccepted(await signed(least, { typ: undefined }));
  await gate.expectAccepted(signedRaw((json) => json));
});

describe('exp', () => {
  test.each([
    ['in an hour', () => now() + 3600],
    ['with a fraction', () => now() + 60.5],
    ['in the year 9999', () => 253_402_300_799],
  ])('%s is accepted', async (_case, exp) => {
    await gate.expectAccepted(await signed({ exp: exp() }));
  });

  test.each([
    ['absent', () => undefined],
    ['now', now],
    ['a second ago', () => now() - 1],
    ['0', () => 0],
    ['negative', () => -1],
    ['1e300', () => 1e300],
    ['a text', () => String(now() + 60)],
    ['a date as text', () => '2999-01-01T00:00:00Z'],
    ['null', () => null],
    ['true', () => true],
    ['an array', () => [now() + 60]],
    ['an object', () => ({})],
  ])('%s is 401', async (_case, exp) => {
    await gate.expectRefused(await signed({ exp: exp() as number }));
  });

  test('of an infinite number is 401', async () => {
    await gate.expectRefused(signedClaims((text) => text.replace(/"exp":\d+/, '"exp":1e400')));
  });

  test.concurrent('ends a token that was accepted before', async () => {
    const token = await signed({ exp: now() + 4 });
    await gate.expectAccepted(token);

    await until('it is refused', async () => (await gate.judge(`Bearer ${token}`)).status === 401);
    await gate.expectRefused(token);
  });
});

describe('nbf', () => {
  test.each([
    ['absent', () => undefined],
    ['now', now],
    ['in the past', () => now() - 60],
  ])('%s is accepted', async (_case, nbf) => {
    await gate.expectAccepted(await signed({ nbf: nbf() }));
  });

  test.each([
    ['in the future', () => now() + 60],
    ['in five seconds', () => now() + 5],
    ['a text', () => String(now() - 60)],
    ['null', () => null],
  ])('%s is 401', async (_case, nbf) => {
    await gate.expectRefused(await signed({ nbf: nbf() as number }));
  });
});

describe('iss', () => {
  test.each([
    ['absent', () => undefined],
    ['another', () => 'https://elsewhere.example'],
    ['with a slash at its end', () => `${gate.issuer.issuer}/`],
    ['in capitals', () => gate.issuer.issuer.toUpperCase()],
    ['a beginning of it', () => gate.issuer.issuer.slice(0, -1)],
    ['an array of it', () => [gate.issuer.issuer]],
    ['empty', () => ''],
    ['null', () => null],
  ])('%s is 401', async (_case, iss) => {
    await gate.expectRefused(await signed({ iss: iss() as string }));
  });
});

describe('aud', () => {
  test.each([
    ['the audience', () => gate.issuer.audience],
    ['an array of it', () => [gate.issuer.audience]],
    ['an array that contains it', () => ['another', gate.issuer.audience, 'a third']],
  ])('%s is accepted', async (_case, aud) => {
    await gate.expectAccepted(await signed({ aud: aud() }));
  });

  test.each([
    ['absent', () => undefined],
    ['another', () => 'another-service'],
    ['longer', () => `${gate.issuer.audience}-2`],
    ['shorter', () => gate.issuer.audience.slice(0, -1)],
    ['in capitals', () => gate.issuer.audience.toUpperCase()],
    ['one of several in a text', () => `another ${gate.issuer.audience}`],
    ['an empty array', () => []],
    ['an array without it', () => ['another', 'a third']],
    ['an array within an array', () => [[gate.issuer.audience]]],
    ['an object', () => ({ [gate.issuer.audience]: true })],
    ['null', () => null],
    ['a number', () => 42],
    ['empty', () => ''],
  ])('%s is 401', async (_case, aud) => {
    await gate.expectRefused(await signed({ aud: aud() }));
  });
});

describe('with several audiences in SVC_OAUTH_AUDIENCE, aud', () => {
  let several: Gate;

  beforeAll(async () => {
    several = await startGate({ SVC_OAUTH_AUDIENCE: 'one, https://two.example/' });
    return () => several.stop();
  });

  test.each([['one'], ['https://two.example/'], [['other', 'one']], [['https://two.example/', 'one']]])(
    '%j is accepted',
    async (aud) => {
      await several.expectAccepted(await several.issuer.sign({ aud }));
    },
  );

  test.each([
    ['one, https://two.example/'],
    ['one,https://two.example/'],
    ['two'],
    [''],
    [[]],
    [['']],
    [[['one']]],
  ])('%j is 401', async (aud) => {
    await several.expectRefused(await several.issuer.sign({ aud: aud as never }));
  });
});

describe('sub', () => {
  test.each(['svc', '1', 'urn:service:billing', 'Zoë 🌍'])('%s is accepted', async (sub) => {
    await gate.expectAccepted(await signed({ sub }));
  });

  test.each([[undefined], [''], [null], [42], [0], [true], [['svc']], [{ id: 'svc' }], ['svc\0'], ['\0']])(
    '%j is 401',
    async (sub) => {
      await gate.expectRefused(await signed({ sub }));
    },
  );

  test.each(['\\ud800', 'svc-\\udc00', '\\udf0d\\ud83c', '\\u0000'])('%s in JSON is 401', async (escaped) => {
    await gate.expectRefused(
      signedClaims((text) => text.replace('"sub":"svc-test"', `"sub":"svc${escaped}"`)),
    );
  });

  test('a surrogate pair in JSON is accepted', async () => {
    await gate.expectAccepted(
      signedClaims((text) => text.replace('"sub":"svc-test"', '"sub":"svc\\ud83c\\udf0d"')),
    );
  });
});

describe('typ', () => {
  test.each([
    [undefined],
    ['JWT'],
    ['jwt'],
    ['at+jwt'],
    ['AT+JWT'],
    ['application/jwt'],
    ['application/at+jwt'],
    ['Application/At+Jwt'],
  ])('%s is accepted', async (typ) => {
    await gate.expectAccepted(await signed({}, { typ }));
  });

  test.each([
    ['JOSE'],
    ['JWE'],
    ['id+jwt'],
    ['dpop+jwt'],
    ['logout+jwt'],
    ['secevent+jwt'],
    ['at+jwt '],
    ['JWT\0'],
    ['application/json'],
    ['application/'],
    ['application/id+jwt'],
    ['application/application/jwt'],
    ['text/jwt'],
    ['application/at+jwt; charset=utf-8'],
    [''],
    [null],
    [42],
    [['JWT']],
    [{}],
  ])('%j is 401', async (typ) => {
    await gate.expectRefused(await signed({}, { typ }));
  });
});

describe('any cnf, which binds a token to a key or a certificate, is 401', () => {
  test.each([
    [{ jkt: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I' }],
    [{ 'x5t#S256': 'bwcK0esc3ACC3DB2Y5_lESsXE8o9ltc05O89jdN-dg2' }],
    [{ jwk: {} }],
    [{}],
    [null],
    [false],
    [''],
    [[]],
    [0],
  ])('%j', async (cnf) => {
    await gate.expectRefused(await signed({ cnf }));
  });

  test('repeated', async () => {
    await gate.expectRefused(signedClaims((text) => text.replace('{', '{"cnf":{"jkt":"x"},"cnf":null,')));
  });
});

describe('a payload that is not a JSON object is 401', () => {
  test.each([
    ['a text', '"claims"'],
    ['an array', '[]'],
    ['null', 'null'],
    ['a number', '42'],
    ['no JSON', '{"sub":'],
    ['JSON and more', '{} {}'],
  ])('%s', async (_case, claims) => {
    await gate.expectRefused(signedRaw(({ header }) => ({ header, claims })));
  });

  test('not UTF-8', async () => {
    const { key, header, claims } = goodParts(gate);
    const bytes = Buffer.from(JSON.stringify({ ...claims, name: '?' }));
    bytes[bytes.indexOf('?')] = 0xff;

    await gate.expectRefused(forged(header, bytes, rs256(key)));
  });

  test('another token', async () => {
    const { key, header } = goodParts(gate);
    const inner = await signed({});

    await gate.expectRefused(forged({ ...header, cty: 'JWT' }, inner, rs256(key)));
  });
});

describe('SVC_OAUTH_CLOCK_TOLERANCE applies to', () => {
  let tolerant: Gate;

  beforeAll(async () => {
    tolerant = await startGate({ SVC_OAUTH_CLOCK_TOLERANCE: '30' });
    return () => tolerant.stop();
  });

  test('exp', async () => {
    await tolerant.expectAccepted(await tolerant.issuer.sign({ exp: now() - 20 }));
    await tolerant.expectRefused(await tolerant.issuer.sign({ exp: now() - 31 }));
  });

  test('nbf', async () => {
    await tolerant.expectAccepted(await tolerant.issuer.sign({ nbf: now() + 20 }));
    await tolerant.expectRefused(await tolerant.issuer.sign({ nbf: now() + 60 }));
  });

  test.concurrent('a token that was accepted before', async () => {
    const token = await tolerant.issuer.sign({ exp: now() - 26 });
    await tolerant.expectAccepted(token);
    await tolerant.expectAccepted(token);
    await until('it is refused', async () => (await tolerant.judge(`Bearer ${token}`)).status === 401);

    await tolerant.expectRefused(token);
  });
});
