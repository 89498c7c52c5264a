import { afterAll, describe, onTestFinished, test, vi } from 'vitest';
import { forged, goodParts, rs256 } from '../stage/forge.ts';
import { startGate } from './gate.ts';

const gate = await startGate({ onTestFinished: afterAll });
const { issuer, audience, sign } = gate.issuer;
const { key, header, claims } = goodParts(gate);

const now = () => Math.floor(Date.now() / 1000);

/** Sets the clock to a second since 1970 until the test ends. */
function setClock(seconds: number): void {
  vi.useFakeTimers({ toFake: ['Date'], now: seconds * 1000 });
  onTestFinished(() => void vi.useRealTimers());
}

/** A good signature of a payload that no library would write. */
const signedRaw = (payload: string | Buffer) => forged(header, payload, rs256(key));

const signedClaims = (change: (json: string) => string) => signedRaw(change(JSON.stringify(claims)));

test('a token with exactly the required claims is accepted', async () => {
  const least = { iss: issuer, aud: audience, sub: 'svc', roles: ['users.read'], iat: undefined };

  await gate.expectAccepted(await sign(least, { typ: undefined }));
  await gate.expectAccepted(signedClaims((json) => json));
});

type Case = readonly [claim: string, title: string, value: () => unknown];

describe('the claim', () => {
  test.each<Case>([
    ['exp', 'with a fraction', () => now() + 60.5],
    ['exp', 'in the year 9999', () => 253_402_300_799],
    ['nbf', 'absent', () => undefined],
    ['nbf', 'now', now],
    ['nbf', 'zero', () => 0],
    ['iat', 'in an hour', () => now() + 3600],
    ['aud', 'an array that contains the audience', () => ['another', audience, 'a third']],
    ['sub', 'Zoë 🌍', () => 'Zoë 🌍'],
  ])('%s, %s, is accepted', async (claim, _title, value) => {
    await gate.expectAccepted(await sign({ [claim]: value() }));
  });

  test.each<Case>([
    ['exp', 'absent', () => undefined],
    ['exp', 'a second ago', () => now() - 1],
    ['exp', 'in the year 10000', () => 253_402_300_800],
    ['exp', 'a text', () => String(now() + 60)],
    ['exp', 'null', () => null],
    ['nbf', 'in five seconds', () => now() + 5],
    ['nbf', 'a text', () => String(now() - 60)],
    ['nbf', 'null', () => null],
    ['iat', 'a text', () => String(now())],
    ['iat', 'null', () => null],
    ['iss', 'with a slash at its end', () => `${issuer}/`],
    ['iss', 'a beginning of it', () => issuer.slice(0, -1)],
    ['iss', 'an array of it', () => [issuer]],
    ['aud', 'longer', () => `${audience}-2`],
    ['aud', 'one of several in a text', () => `another ${audience}`],
    ['aud', 'an array within an array', () => [[audience]]],
    ['aud', 'an object', () => ({ [audience]: true })],
    ['sub', 'absent', () => undefined],
    ['sub', 'empty', () => ''],
    ['sub', 'null', () => null],
    ['sub', 'a number', () => 42],
    ['sub', 'an array', () => ['svc']],
  ])('%s, %s, is 401', async (claim, _title, value) => {
    await gate.expectRefused(await sign({ [claim]: value() }));
  });

  test('exp of an infinite number is 401', async () => {
    await gate.expectRefused(signedClaims((json) => json.replace(/"exp":\d+/, '"exp":1e400')));
  });

  test('exp ends a token that was accepted before', async () => {
    const exp = now() + 60;
    const token = await sign({ exp });
    await gate.expectAccepted(token);

    setClock(exp - 1);
    await gate.expectAccepted(token);
    setClock(exp);
    await gate.expectRefused(token);
  });

  test('aud can be any one of several in SVC_OAUTH_AUDIENCE, but not their list or an empty text', async () => {
    const several = await startGate({ onTestFinished }, { SVC_OAUTH_AUDIENCE: 'one, https://two.example/' });

    for (const aud of ['one', ['other', 'https://two.example/']])
      await several.expectAccepted(await several.issuer.sign({ aud }));
    for (const aud of ['one, https://two.example/', 'two', '', []])
      await several.expectRefused(await several.issuer.sign({ aud }));
  });

  const withEscaped = (sub: string) => signedClaims((json) => json.replace('svc-test', `svc${sub}`));

  test.each(['\\ud800', '\\udf0d\\ud83c', '\\u0000'])('sub, with %s in JSON, is 401', async (escaped) => {
    await gate.expectRefused(withEscaped(escaped));
  });

  test('sub, with a surrogate pair in JSON, is accepted', async () => {
    await gate.expectAccepted(withEscaped('\\ud83c\\udf0d'));
  });
});

describe('typ', () => {
  test.each(['JWT', 'AT+JWT', 'application/jwt', 'Application/At+Jwt'])('%s is accepted', async (typ) => {
    await gate.expectAccepted(await sign({}, { typ }));
  });

  test.each<[unknown]>([
    ['id+jwt'],
    ['at+jwt '],
    ['application/id+jwt'],
    ['application/application/jwt'],
    [''],
    [null],
    [['JWT']],
  ])('%j is 401', async (typ) => {
    await gate.expectRefused(await sign({}, { typ }));
  });
});

describe('any cnf, which binds a token to a key or a certificate, is 401', () => {
  test.each([{ jkt: '0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I' }, {}, null, false])('%j', async (cnf) => {
    await gate.expectRefused(await sign({ cnf }));
  });

  test('repeated', async () => {
    await gate.expectRefused(signedClaims((json) => json.replace('{', '{"cnf":{"jkt":"x"},"cnf":null,')));
  });
});

describe('a payload that is not a JSON object is 401', () => {
  test.each([
    ['an array', '[]'],
    ['no JSON', '{"sub":'],
    ['JSON and more', '{} {}'],
  ])('%s', async (_case, payload) => {
    await gate.expectRefused(signedRaw(payload));
  });

  test('not UTF-8', async () => {
    const bytes = Buffer.from(JSON.stringify({ ...claims, name: '?' }));
    bytes[bytes.indexOf('?')] = 0xff;

    await gate.expectRefused(signedRaw(bytes));
  });
});

test('SVC_OAUTH_CLOCK_TOLERANCE applies to exp, also of a token that was accepted before, and to nbf', async () => {
  const tolerant = await startGate({ onTestFinished }, { SVC_OAUTH_CLOCK_TOLERANCE: '30' });
  const exp = now() + 60;
  const token = await tolerant.issuer.sign({ exp });

  await tolerant.expectAccepted(await tolerant.issuer.sign({ exp: now() - 20 }));
  await tolerant.expectRefused(await tolerant.issuer.sign({ exp: now() - 31 }));
  await tolerant.expectAccepted(await tolerant.issuer.sign({ nbf: now() + 20 }));
  await tolerant.expectRefused(await tolerant.issuer.sign({ nbf: now() + 60 }));
  await tolerant.expectAccepted(token);
  setClock(exp + 29);
  await tolerant.expectAccepted(token);
  setClock(exp + 30);
  await tolerant.expectRefused(token);
});
