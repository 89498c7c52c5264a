import { createPublicKey, generateKeyPairSync, KeyObject, sign } from 'node:crypto';
import { afterAll, describe, expect, test } from 'vitest';
import { encoded, forged, goodParts, hmac, rs256 } from '../stage/forge.ts';
import { startIssuer } from '../stage/tokens.ts';
import { startGate } from './gate.ts';

const gate = await startGate({ onTestFinished: afterAll });
const attacker = await startIssuer();
const attackerKey = await attacker.rotate('RS256');
const elliptic = await gate.issuer.addKey('ES256');
const { key, header, claims } = goodParts(gate);

// The parts from which the forgeries are made form a good token, and no other server received a request for keys.
afterAll(async () => {
  await gate.expectAccepted(withHeader({}));
  expect(attacker.fetches).toBe(0);
  await attacker.stop();
});

/** A good token of the issuer with another header. */
const withHeader = (change: object, signedWith = key) =>
  forged({ ...header, ...change }, claims, rs256(signedWith));

describe('a token without a signature is 401', () => {
  test.each(['none', 'None', 'NONE', 'nOnE', ''])('alg %j', async (alg) => {
    const input = `${encoded({ ...header, alg })}.${encoded(claims)}`;

    for (const token of [input, `${input}.`, `${input}.${encoded('none')}`]) await gate.expectRefused(token);
    await gate.expectRefused(withHeader({ alg }));
  });

  test.each([
    ['no byte', 0],
    ['zeros', 256],
    ['too few zeros', 64],
    ['too many zeros', 512],
  ])('a signature of %s', async (_case, length) => {
    await gate.expectRefused(forged(header, claims, () => Buffer.alloc(length)));
  });
});

describe('a token signed with a public key as secret is 401', () => {
  test.each(['HS256', 'HS384', 'HS512'])('%s', async (alg) => {
    const publicKey = createPublicKey(KeyObject.from(key.privateKey));
    const secrets = [
      publicKey.export({ type: 'spki', format: 'pem' }),
      publicKey.export({ type: 'pkcs1', format: 'pem' }),
      publicKey.export({ type: 'spki', format: 'der' }),
      JSON.stringify(key.publicJwk),
      Buffer.from(String(key.publicJwk.n), 'base64url'),
      String(key.publicJwk.n),
      '',
    ];

    for (const secret of secrets) {
      await gate.expectRefused(forged({ ...header, alg }, claims, hmac(alg, secret)));
      await gate.expectRefused(forged(header, claims, hmac(alg, secret)));
    }
  });
});

describe("an attacker's key in the token is 401", () => {
  test.each([
    ['only as the signing key', {}],
    ['jwk', { jwk: attackerKey.publicJwk }],
    ['jwk, without a kid', { jwk: attackerKey.publicJwk, kid: undefined }],
    ['jku', { jku: attacker.jwksUri }],
    ["jku, with the attacker's kid", { jku: attacker.jwksUri, kid: attackerKey.kid }],
    ['x5u', { x5u: attacker.jwksUri }],
    ['x5c', { x5c: [encoded(attackerKey.publicJwk.n)] }],
    ['x5t', { x5t: 'dGh1bWJwcmludA', 'x5t#S256': 'dGh1bWJwcmludA' }],
    ['iss', { iss: attacker.issuer }],
    ['no kid', { kid: undefined }],
  ])('%s', async (_case, change) => {
    await gate.expectRefused(withHeader(change, attackerKey));
  });

  test("the attacker's issuer with the attacker's key", async () => {
    await gate.expectRefused(await attacker.sign());
    await gate.expectRefused(await attacker.sign({ iss: gate.issuer.issuer, aud: gate.issuer.audience }));
  });
});

describe('a kid that would be a path, a URL or a query elsewhere is 401', () => {
  const kids = [
    ...['../../../../dev/null', '/dev/null', `${key.kid}' OR '1'='1`, '1; DROP TABLE users'],
    ...['http://127.0.0.1/jwks', '$(id)', '__proto__', 'constructor', '', '*', key.kid.toUpperCase()],
    ...[1, null, [key.kid], { kid: key.kid }, true],
  ];

  test.each(kids.map((kid) => [kid]))('%j', async (kid) => {
    await gate.expectRefused(withHeader({ kid }));
    await gate.expectRefused(withHeader({ kid }, attackerKey));
  });
});

describe('critical header parameters are 401', () => {
  test.each([
    ['b64', { b64: false, crit: ['b64'] }],
    ['b64 that changes nothing', { b64: true, crit: ['b64'] }],
    ['exp', { exp: 9_999_999_999, crit: ['exp'] }],
    ['an unknown one', { 'urn:example:x': 1, crit: ['urn:example:x'] }],
    ['a missing parameter', { crit: ['urn:example:x'] }],
    ['an empty list', { crit: [] }],
    ['alg', { crit: ['alg'] }],
    ['null', { crit: null }],
    ['a text', { crit: 'b64' }],
    ['b64 that is not listed as critical', { b64: false }],
  ])('%s', async (_case, change) => {
    await gate.expectRefused(withHeader(change));
  });

  test('b64 with an unencoded payload', async () => {
    const head = encoded({ ...header, b64: false, crit: ['b64'] });
    const signature = encoded(rs256(key)(`${head}.${JSON.stringify(claims)}`));

    await gate.expectRefused(`${head}.${encoded(claims)}.${signature}`);
    await gate.expectRefused(`${head}..${signature}`);
  });
});

describe('a token with another algorithm than its key has is 401', () => {
  const others = [
    ...['RS384', 'RS512', 'PS256', 'ES256', 'EdDSA', 'RS1', 'rs256', 'RS256 ', 'ES256K', 'RSA-OAEP', 'dir'],
    ...[undefined, null, 256, ['RS256'], { name: 'RS256' }, true],
  ];

  test.each(others.map((alg) => [alg]))('%j', async (alg) => {
    await gate.expectRefused(withHeader({ alg }));
  });

  test('a signature with another padding or digest than its name says', async () => {
    const privateKey = KeyObject.from(key.privateKey);
    const signatures = [
      (input: string) => sign('sha512', Buffer.from(input), privateKey),
      (input: string) => sign('sha1', Buffer.from(input), privateKey),
      (input: string) => sign('sha256', Buffer.from(input), { key: privateKey, padding: 6, saltLength: 32 }),
    ];

    for (const signature of signatures) await gate.expectRefused(forged(header, claims, signature));
  });

  test('an elliptic signature in another form, of another key or of zeros', async () => {
    const named = { ...header, alg: 'ES256', kid: elliptic.kid };
    const own = KeyObject.from(elliptic.privateKey);
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey;
    const asDer = (input: string) => sign('sha256', Buffer.from(input), own);
    const asPair = (by: KeyObject) => (input: string) =>
      sign('sha256', Buffer.from(input), { key: by, dsaEncoding: 'ieee-p1363' });

    await gate.expectAccepted(forged(named, claims, asPair(own)));
    await gate.expectRefused(forged(named, claims, asDer));
    await gate.expectRefused(forged(named, claims, () => Buffer.alloc(64)));
    await gate.expectRefused(forged({ ...named, kid: header.kid }, claims, asPair(own)));
    await gate.expectRefused(forged({ ...header, kid: elliptic.kid }, claims, asPair(own)));
    await gate.expectRefused(forged(named, claims, asPair(other)));
  });
});

test('a token with any claim changed is 401, also after the original was accepted', async () => {
  const token = await gate.issuer.sign({ roles: ['orders.read'] });
  await gate.expectForbidden(token);
  const [head, , signature] = token.split('.');

  await gate.expectRefused(`${head}.${encoded(claims)}.${signature}`);
});

describe('a header that is not a JSON object is 401', () => {
  test.each([
    ['a text', '"RS256"'],
    ['an array', '["RS256"]'],
    ['null', 'null'],
    ['no JSON', '{"alg":"RS256"'],
    ['nothing', ' '],
    ['nested without end', '['.repeat(10_000)],
  ])('%s', async (_case, text) => {
    await gate.expectRefused(forged(text, claims, rs256(key)));
  });

  test('not UTF-8', async () => {
    const bytes = Buffer.from(JSON.stringify({ ...header, x: '?' }));
    bytes[bytes.indexOf('?')] = 0xff;

    await gate.expectRefused(forged(bytes, claims, rs256(key)));
  });

  test.each(['header', 'payload'])('a byte order mark before the %s', async (part) => {
    const marked = (value: object, name: string) => (name === part ? '\ufeff' : '') + JSON.stringify(value);

    await gate.expectRefused(forged(marked(header, 'header'), marked(claims, 'payload'), rs256(key)));
  });
});

test('an encrypted token is 401', async () => {
  const parts = [{ ...header, alg: 'RSA-OAEP-256', enc: 'A256GCM' }, 'key', 'iv', claims, 'tag'];

  await gate.expectRefused(parts.map(encoded).join('.'));
});
