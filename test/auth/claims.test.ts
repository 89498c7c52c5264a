import { beforeAll, describe, onTestFinished, test, vi } from 'vitest';
import { forged, goodParts, rs256 } from '../stage/forge.ts';
import { type Gate, startGate } from '../stage/gate.ts';

let gate: Gate;

beforeAll(async () => {
  gate = await startGate();
  return () => gate.stop();
});

const now = () => Math.floor(Date.now() / 1000);
const signed = (claims: Record<string, unknown>, header = {}) => gate.issuer.sign(claims, header);

/** Sets the clock to a second since 1970 until the test ends. */
function setClock(seconds: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: seconds * 1000 });
  onTestFinished(() => void vi.useRealTimers());
}

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
    ['with a fraction', () => now() + 60.5],
    ['in the year 9999', () => 253_402_300_799],
  ])('%s is accepted', async (_case, exp) => {
    await gate.expectAccepted(await signed({ exp: exp() }));
  });

  test.each([
    ['absent', () => undefined],
    ['a second ago', () => now() - 1],
    ['in the year 10000', () => 253_402_300_800],
    ['a text', () => String(now() + 60)],
    ['null', () => null],
  ])('%s is 401', async (_case, exp) => {
    await gate.expectRefused(await signed({ exp: exp() as number }));
  });

  test('of an infinite number is 401', async () => {
    await gate.expectRefused(signedClaims((text) => text.replace(/"exp":\d+/, '"exp":1e400')));
  });

  test('ends a token that was accepted before', async () => {
    const exp = now() + 60;
    const token = await signed({ exp });
    await gate.expectAccepted(token);

    setClock(exp - 1);
    await gate.expectAccepted(token);
    setClock(exp);
    await gate.expectRefused(token);
  });
});

describe('nbf', () => {
  test.each([
    ['absent', () => undefined],
    ['now', now],
  ])('%s is accepted', async (_case, nbf) => {
    await gate.expectAccepted(await signed({ nbf: nbf() }));
  });

  test.each([
    ['in five seconds', () => now() + 5],
    ['a text', () => String(now() - 60)],
    ['null', () => null],
  ])('%s is 401', async (_case, nbf) => {
    await gate.expectRefused(await signed({ nbf: nbf() as number }));
  });
});

describe('iss', () => {
  test.each([
    ['with a slash at its end', () => `${gate.issuer.issuer}/`],
    ['a beginning of it', () => gate.issuer.issuer.slice(0, -1)],
    ['an array of it', () => [gate.issuer.issuer]],
  ])('%s is 401', async (_case, iss) => {
    await gate.expectRefused(await signed({ iss: iss() as string }));
  });
});

describe('aud', () => {
  test('an array that contains the audience is accepted', async () => {
    await gate.expectAccepted(await signed({ aud: ['another', gate.issuer.audience, 'a third'] }));
  });

  test.each([
    ['longer', () => `${gate.issuer.audience}-2`],
    ['one of several in a text', () => `another ${gate.issuer.audience}`],
    ['an array within an array', () => [[gate.issuer.audience]]],
    ['an object', () => ({ [gate.issuer.audience]: true })],
  ])('%s is 401', async (_case, aud) => {
    await gate.expectRefused(await signed({ aud: aud() }));
  });

  test('can be any one of several in SVC_OAUTH_AUDIENCE, but not their list or an empty text', async () => {
    const several = await startGate({ SVC_OAUTH_AUDIENCE: 'one, https://two.example/' });
    onTestFinished(() => several.stop());

    for (const aud of ['one', ['other', 'https://two.example/']])
      await several.expectAccepted(await several.issuer.sign({ aud }));
    for (const aud of ['one, https://two.example/', 'two', '', []])
      await several.expectRefused(await several.issuer.sign({ aud }));
  });
});

describe('sub', () => {
  test('Zoë 🌍 is accepted', async () => {
    await gate.expectAccepted(await signed({ sub: 'Zoë 🌍' }));
  });

  test.each([[undefined], [''], [null], [42], [['svc']]])('%j is 401', async (sub) => {
    await gate.expectRefused(await signed({ sub }));
  });

  test.each(['\\ud800', '\\udf0d\\ud83c', '\\u0000'])('%s in JSON is 401', async (escaped) => {
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
  test.each([['JWT'], ['AT+JWT'], ['application/jwt'], ['Application/At+Jwt']])(
    '%s is accepted',
    async (typ) => {
      await gate.expectAccepted(await signed({}, { typ }));
    },
  );

  test.each([
    ['id+jwt'],
    ['at+jwt '],
    ['application/id+jwt'],
    ['application/application/jwt'],
    [''],
    [null],
    [['JWT']],
  ])('%j is 401', async (typ) => {
    await gate.expectRefused(await signed({}, { typ }));
  });
});

describe('any cnf, which binds a token to a key or a certificate, is 401', () => {
  test.each([[{ jkt: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I' }], [{}], [null], [false]])(
    '%j',
    async (cnf) => {
      await gate.expectRefused(await signed({ cnf }));
    },
  );

  test('repeated', async () => {
    await gate.expectRefused(signedClaims((text) => text.replace('{', '{"cnf":{"jkt":"x"},"cnf":null,')));
  });
});

describe('a payload that is not a JSON object is 401', () => {
  test.each([
    ['an array', '[]'],
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
});

test('SVC_OAUTH_CLOCK_TOLERANCE applies to exp, also of a token that was accepted before, and to nbf', async () => {
  const tolerant = await startGate({ SVC_OAUTH_CLOCK_TOLERANCE: '30' });
  onTestFinished(() => tolerant.stop());

  await tolerant.expectAccepted(await tolerant.issuer.sign({ exp: now() - 20 }));
  await tolerant.expectRefused(await tolerant.issuer.sign({ exp: now() - 31 }));
  await tolerant.expectAccepted(await tolerant.issuer.sign({ nbf: now() + 20 }));
  await tolerant.expectRefused(await tolerant.issuer.sign({ nbf: now() + 60 }));
  const exp = now() + 60;
  const token = await tolerant.issuer.sign({ exp });
  await tolerant.expectAccepted(token);
  setClock(exp + 29);
  await tolerant.expectAccepted(token);
  setClock(exp + 30);
  await tolerant.expectRefused(token);
});
