import { type CryptoKey, exportJWK, importJWK } from 'jose';
import { afterAll, describe, expect, onTestFinished, test } from 'vitest';
import type { Settings } from '../../lib/settings/settings.ts';
import { startVerifier } from '../stage/keys.ts';
import type { IssuerKey } from '../stage/tokens.ts';
import { startGate } from './gate.ts';

const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'],
] as const;

const gate = await startGate({ onTestFinished: afterAll });
// The keys exist before the service first fetches them. ES256 has two.
const keys = await Promise.all([...ALGORITHMS, 'ES256'].map((alg) => gate.issuer.addKey(alg)));

test.each(keys)(
  'by default a token can be signed with each key of $alg, with and without a kid',
  async (key) => {
    await gate.expectAccepted(await gate.issuer.sign({}, {}, { key }));
    await gate.expectAccepted(await gate.issuer.sign({}, { kid: undefined }, { key }));
  },
);

test('SVC_OAUTH_ALGORITHMS excludes the algorithms that it does not name', async () => {
  const narrow = await startGate({ onTestFinished }, { SVC_OAUTH_ALGORITHMS: 'ES256, EdDSA' });
  const elliptic = await narrow.issuer.addKey('ES256');
  const edwards = await narrow.issuer.addKey('EdDSA');
  const [rsa] = narrow.issuer.keys;

  await narrow.expectAccepted(await narrow.issuer.sign({}, {}, { key: elliptic }));
  await narrow.expectAccepted(await narrow.issuer.sign({}, {}, { key: edwards }));
  await narrow.expectRefused(await narrow.issuer.sign({}, {}, { key: rsa as IssuerKey }));
});

/**
 * The statuses of tokens of one key, each with another `alg` in its header. The provider serves this key as `shown`,
 * beside one that is always good.
 */
async function judgedBy(
  algorithms: Settings['oauth']['algorithms'],
  { made, shown }: { made: string; shown: object },
  algs: readonly string[],
): Promise<readonly number[]> {
  const { issuer, judge } = await startVerifier({ onTestFinished }, { algorithms });
  const key = await issuer.addKey(made);
  const jwk = await exportJWK(key.privateKey);
  const good = await issuer.addKey('ES384');
  issuer.publish([{ ...key.publicJwk, ...shown }, good.publicJwk]);
  const statuses = [];
  for (const alg of algs) {
    // The same key, with which Web Crypto can sign another algorithm.
    const privateKey = (await importJWK({ ...jwk, alg }, alg)) as CryptoKey;
    statuses.push(await judge(await issuer.sign({}, { alg }, { key: { ...key, privateKey } })));
  }
  return statuses;
}

describe('a key verifies only tokens of', () => {
  const RSA = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
  const unnamed = { alg: undefined };
  const only = (alg: string) => RSA.map((name) => (name === alg ? 200 : 401));

  test.each(RSA)('its own algorithm: %s', async (alg) => {
    expect(await judgedBy(ALGORITHMS, { made: 'RS256', shown: { alg } }, RSA)).toEqual(only(alg));
  });

  test('the first accepted algorithm that fits, if the provider names none', async () => {
    const shown = { made: 'RS256', shown: unnamed };

    expect(await judgedBy(ALGORITHMS, shown, RSA)).toEqual(only('RS256'));
    expect(await judgedBy(['ES384', 'PS512', 'RS256'], shown, RSA)).toEqual(only('PS512'));
  });

  test.each(['ES256', 'ES384', 'ES512', 'EdDSA'])(
    'the algorithm of its curve, if the provider names none: %s',
    async (alg) => {
      expect(await judgedBy(ALGORITHMS, { made: alg, shown: unnamed }, [alg])).toEqual([200]);
    },
  );

  test('no algorithm if its own is not accepted', async () => {
    const accepted = ['RS256', 'ES384'] as const;

    expect(await judgedBy(accepted, { made: 'RS256', shown: { alg: 'PS256' } }, RSA)).toEqual(only('none'));
    expect(await judgedBy(['ES384'], { made: 'RS256', shown: unnamed }, RSA)).toEqual(only('none'));
    expect(await judgedBy(accepted, { made: 'ES256', shown: unnamed }, ['ES256'])).toEqual([401]);
  });
});

describe('Ed25519 is another name of EdDSA', () => {
  test.each([
    ['a key for EdDSA', { alg: 'EdDSA' }],
    ['a key for Ed25519', { alg: 'Ed25519' }],
    ['a key that names no algorithm', { alg: undefined }],
  ])('with %s', async (_case, shown) => {
    const key = { made: 'EdDSA', shown };

    expect(await judgedBy(['EdDSA', 'ES384'], key, ['EdDSA', 'Ed25519'])).toEqual([200, 200]);
    expect(await judgedBy(['ES384'], key, ['EdDSA', 'Ed25519'])).toEqual([401, 401]);
  });

  test('but Ed448 is not', async () => {
    const key = { made: 'EdDSA', shown: { crv: 'Ed448' } };

    expect(await judgedBy(['EdDSA', 'ES384'], key, ['EdDSA', 'Ed25519'])).toEqual([401, 401]);
  });
});
