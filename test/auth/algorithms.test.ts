import { exportJWK, importJWK, type JWK, type JWTHeaderParameters } from 'jose';
import { beforeAll, describe, expect, test } from 'vitest';
import { type Gate, startGate } from '../stage/gate.ts';
import { startVerifier } from '../stage/keys.ts';
import type { IssuerKey } from '../stage/tokens.ts';

const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'],
] as const;

const withoutKid = { kid: undefined } as unknown as Partial<JWTHeaderParameters>;

let gate: Gate;
let narrow: Gate;
let keys: readonly IssuerKey[];
let second: IssuerKey;

// The keys exist before the service first fetches them.
beforeAll(async () => {
  gate = await startGate();
  narrow = await startGate({ SVC_OAUTH_ALGORITHMS: 'ES256, EdDSA' });
  keys = await Promise.all(ALGORITHMS.map((alg) => gate.issuer.addKey(alg)));
  second = await gate.issuer.addKey('ES256');
  return () => Promise.all([gate.stop(), narrow.stop()]);
});

const keyOf = (alg: string): IssuerKey => keys.find((key) => key.alg === alg) as IssuerKey;

describe('by default a token can be signed with', () => {
  test.each(ALGORITHMS)('%s', async (alg) => {
    const key = keyOf(alg);
    const token = await gate.issuer.sign({}, {}, { key });

    await gate.expectAccepted(token);
    await gate.expectRefused(`${token.slice(0, -12)}AAAAAAAAAAAA`);
    await gate.expectAccepted(await gate.issuer.sign({}, withoutKid, { key }));
  });
});

test('a token without a kid is verified with each key of its algorithm', async () => {
  for (const key of [keyOf('ES256'), second]) {
    await gate.expectAccepted(await gate.issuer.sign({ jti: key.kid }, withoutKid, { key }));
  }
});

test('SVC_OAUTH_ALGORITHMS excludes the algorithms that it does not name', async () => {
  const elliptic = await narrow.issuer.addKey('ES256');
  const edwards = await narrow.issuer.addKey('EdDSA');
  const [rsa] = narrow.issuer.keys;

  await narrow.expectAccepted(await narrow.issuer.sign({}, {}, { key: elliptic }));
  await narrow.expectAccepted(await narrow.issuer.sign({}, {}, { key: edwards }));
  await narrow.expectRefused(await narrow.issuer.sign({}, {}, { key: rsa as IssuerKey }));
});

type Algorithms = NonNullable<Parameters<typeof startVerifier>[0]>['algorithms'];

/**
 * The statuses of tokens of one key, each with another `alg` in its header. The provider serves this key as `shown`,
 * beside one that is always good.
 */
async function judgedBy(
  algorithms: NonNullable<Algorithms>,
  { made, shown }: { made: string; shown: Partial<JWK> },
  algs: readonly string[],
): Promise<readonly number[]> {
  const { issuer, judge, stop } = await startVerifier({ algorithms });
  const key = await issuer.addKey(made);
  const good = await issuer.addKey('ES384');
  const keys = [{ ...key.publicJwk, ...shown }, good.publicJwk];
  issuer.answer((_request, response) => response.end(JSON.stringify({ keys })));
  const statuses = [];
  for (const alg of algs) {
    const { privateKey } = await signer(key, alg);
    statuses.push(await judge(await issuer.sign({}, { alg }, { key: { ...key, privateKey } })));
  }
  await stop();
  return statuses;
}

/** The same key, with which Web Crypto can sign another algorithm. */
async function signer(key: IssuerKey, alg: string): Promise<Pick<IssuerKey, 'privateKey'>> {
  const jwk = { ...(await exportJWK(key.privateKey)), alg };
  return { privateKey: (await importJWK(jwk, alg)) as IssuerKey['privateKey'] };
}

describe('a key verifies only tokens of', () => {
  const RSA = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512'];
  const unnamed = { alg: undefined } as unknown as Partial<JWK>;
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
  test.each<[string, Partial<JWK>]>([
    ['a key for EdDSA', { alg: 'EdDSA' }],
    ['a key for Ed25519', { alg: 'Ed25519' }],
    ['a key that names no algorithm', { alg: undefined } as unknown as Partial<JWK>],
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
