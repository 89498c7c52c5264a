import { generateKeyPairSync } from 'node:crypto';
import type { JWK } from 'jose';
import { describe, expect, onTestFinished, test } from 'vitest';
import { importUsableKeys } from '../../lib/auth/usable-keys.ts';
import { forged, goodParts, hmac, rs256 } from '../stage/forge.ts';
import { startVerifier } from '../stage/keys.ts';

/** The status of a token under the kid `odd` when the key server serves these keys beside the good one. */
async function judged(keys: readonly object[], sign = rs256(pair.privateKey), header = {}) {
  const { issuer, judge } = await startVerifier({ onTestFinished });
  issuer.publish([...keys, ...issuer.keys.map(({ publicJwk }) => publicJwk)]);
  const parts = goodParts({ issuer });

  const status = await judge(forged({ ...parts.header, kid: 'odd', ...header }, parts.claims, sign));
  // The good key is always in use.
  expect(await judge(await issuer.sign())).toBe(200);
  return status;
}

const rsa = (modulusLength: number, publicExponent = 65_537) =>
  generateKeyPairSync('rsa', { modulusLength, publicExponent });

const pair = rsa(2048);

const shown = ({ publicKey }: ReturnType<typeof rsa>, more: object = {}): JWK => ({
  ...(publicKey.export({ format: 'jwk' }) as JWK),
  kid: 'odd',
  alg: 'RS256',
  use: 'sig',
  ...more,
});

test.each([
  ['without alg', { alg: undefined }],
  ['whose other members are null', { use: null, key_ops: null, x5c: null, x5t: null, d: null, k: null }],
  ['whose key_ops name verify beside others', { key_ops: ['encrypt', 'sign', 'verify', 'urn:example:x'] }],
  ['with unknown members', { x5t: 'AAAA', 'urn:example:x': [1] }],
])('a key of the JWKS is trusted: %s', async (_case, more) => {
  expect(await judged([shown(pair, more)])).toBe(200);
});

describe('a key of the JWKS is ignored', () => {
  const secret = Buffer.alloc(32, 7);

  test.each([
    [2040, 65_537],
    [2048, 257],
  ])('of RSA with %i bits and the exponent %i', async (bits, exponent) => {
    const weak = rsa(bits, exponent);

    expect(await judged([shown(weak)], rs256(weak.privateKey))).toBe(401);
  });

  test('of RSA with 1024 bits and leading zeros', async () => {
    const weak = rsa(1024);
    const n = Buffer.concat([Buffer.alloc(128), Buffer.from(String(shown(weak).n), 'base64url')]);

    expect(await judged([shown(weak, { n: n.toString('base64url') })], rs256(weak.privateKey))).toBe(401);
  });

  test.each([
    ['modulus', 'n', 16_385],
    ['exponent', 'e', 65],
  ])('of RSA with a %s that OpenSSL does not accept', async (_case, member, bits) => {
    const value = Buffer.alloc(Math.ceil(bits / 8), 255);
    value[0] = 1;
    const keyWith = (odd: Buffer) => ({ keys: [shown(pair, { [member]: odd.toString('base64url') })] });

    expect(await importUsableKeys(keyWith(value), ['RS256'])).toEqual([]);
    expect(await importUsableKeys(keyWith(value.subarray(1)), ['RS256'])).toHaveLength(1);
  });

  test('if it is symmetric', async () => {
    const key = { kty: 'oct', k: secret.toString('base64url'), kid: 'odd', use: 'sig' };
    const keys = [{ ...key, alg: 'HS256' }, key];

    expect(await judged(keys, hmac('HS256', secret), { alg: 'HS256' })).toBe(401);
    expect(await judged(keys, hmac('HS256', secret))).toBe(401);
  });

  test('if it is private', async () => {
    const key = { ...shown(pair), ...(pair.privateKey.export({ format: 'jwk' }) as JWK) };

    expect(await judged([key])).toBe(401);
    expect(await judged([{ ...shown(pair), d: 'AQAB' }])).toBe(401);
  });

  test.each([
    ['for encryption', { use: 'enc' }],
    ['without a modulus', { n: undefined }],
    ['without a type', { kty: undefined }],
    ['for another algorithm', { alg: 'RS512' }],
    ['for an encryption algorithm', { alg: 'RSA-OAEP' }],
    ['for an algorithm of another type', { alg: 'ES256' }],
    ['whose algorithm is not a text', { alg: 42 }],
    ['that may only sign', { key_ops: ['sign'] }],
  ])('%s', async (_case, more) => {
    expect(await judged([shown(pair, more)])).toBe(401);
  });

  test.each([[null], [42], ['key'], [[]], [{}]])('if it is %j', async (key) => {
    expect(await judged([key as object])).toBe(401);
  });

  test.each([
    ['if it is not a point of its curve', 'P-256', ({ x }: JWK) => ({ y: x })],
    ['of a curve that does not belong to its algorithm', 'P-384', () => ({})],
  ])('%s', async (_case, namedCurve, change) => {
    const jwk = generateKeyPairSync('ec', { namedCurve }).publicKey.export({ format: 'jwk' }) as JWK;
    const key = { ...jwk, kid: 'odd', alg: 'ES256', use: 'sig', ...change(jwk) };

    expect(await judged([key], () => Buffer.alloc(64, 1), { alg: 'ES256' })).toBe(401);
  });
});
