import type { JWTHeaderParameters } from 'jose';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { type Gate, startGate } from '../../stage/gate.ts';
import type { IssuerKey } from '../../stage/tokens.ts';

const ALGORITHMS = [
  'RS256',
  'RS384',
  'RS512',
  'PS256',
  'PS384',
  'PS512',
  'ES256',
  'ES384',
  'ES512',
  'EdDSA',
] as const;

const withoutKid = { kid: undefined } as unknown as Partial<JWTHeaderParameters>;

let gate: Gate;
let narrow: Gate;
let keys: readonly IssuerKey[];
let second: IssuerKey;

// The keys are there before the service first asks for them.
beforeAll(async () => {
  gate = await startGate();
  narrow = await startGate({ SVC_OAUTH_ALGORITHMS: 'ES256, EdDSA' });
  keys = await Promise.all(ALGORITHMS.map((alg) => gate.issuer.addKey(alg)));
  second = await gate.issuer.addKey('ES256');
});

afterAll(() => Promise.all([gate.stop(), narrow.stop()]));

const keyOf = (alg: string): IssuerKey => keys.find((key) => key.alg === alg) as IssuerKey;

describe('by default a token may be signed with', () => {
  test.each(ALGORITHMS)('%s', async (alg) => {
    const key = keyOf(alg);
    const token = await gate.issuer.sign({}, {}, { key });

    await gate.expectAccepted(token);
    await gate.expectRefused(`${token.slice(0, -12)}AAAAAAAAAAAA`);
    await gate.expectAccepted(await gate.issuer.sign({}, withoutKid, { key }));
  });
});

test('without a kid each key of the algorithm is tried', async () => {
  for (const key of [keyOf('ES256'), second]) {
    await gate.expectAccepted(await gate.issuer.sign({ jti: key.kid }, withoutKid, { key }));
  }
});

test('SVC_OAUTH_ALGORITHMS leaves out what it does not name', async () => {
  const elliptic = await narrow.issuer.addKey('ES256');
  const edwards = await narrow.issuer.addKey('EdDSA');
  const [rsa] = narrow.issuer.keys;

  await narrow.expectAccepted(await narrow.issuer.sign({}, {}, { key: elliptic }));
  await narrow.expectAccepted(await narrow.issuer.sign({}, {}, { key: edwards }));
  await narrow.expectRefused(await narrow.issuer.sign({}, {}, { key: rsa as IssuerKey }));
});
