import fc from 'fast-check';
import { importJWK, jwtVerify } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ALGORITHMS } from '../../../lib/settings/setting-forms.ts';
import { forged, rs256 } from '../../stage/forge.ts';
import { startVerifier } from '../../stage/keys.ts';
import type { IssuerKey } from '../../stage/tokens.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

let verifier: Awaited<ReturnType<typeof startVerifier>>;
let keys: IssuerKey[];

beforeAll(async () => {
  verifier = await startVerifier({ algorithms: ALGORITHMS });
  keys = await Promise.all(ALGORITHMS.map((alg) => verifier.issuer.addKey(alg)));
});

afterAll(() => verifier.stop());

/** What jose says of a token of this key: it knows this key alone, and takes a text that is not canonical. */
async function judgedByJose(token: string, key: IssuerKey): Promise<number> {
  const { issuer, audience } = verifier.issuer;
  const [payload, signature] = token.split('.').slice(1) as [string, string];
  const isCanonical = [payload, signature].every(
    (part) => Buffer.from(part, 'base64url').toString('base64url') === part,
  );
  return jwtVerify(token, await importJWK(key.publicJwk, key.alg), {
    issuer,
    audience,
    algorithms: [key.alg],
    requiredClaims: ['exp', 'sub'],
  }).then(
    () => (isCanonical ? 200 : 401),
    () => 401,
  );
}

/** Texts like a signature: each other character at its ends, shorter and longer ones, the bytes in another order. */
function mutantsOf(signature: string): readonly string[] {
  const ends = [0, 1, 2, 3, -4, -3, -2, -1].map((at) => (at + signature.length) % signature.length);
  const bytes = Buffer.from(signature, 'base64url');
  const half = bytes.length / 2;
  return [
    ...ends.flatMap((at) =>
      [...ALPHABET].map((put) => signature.slice(0, at) + put + signature.slice(at + 1)),
    ),
    ...[1, 2, 3, 4, 8, 11, 22, 43].map((length) => signature.slice(0, length)),
    ...[1, 2, 3, 4, 8, 43].map((length) => signature.slice(0, -length)),
    ...[1, 2, 3, 4, 8, 43].map((length) => signature.slice(length)),
    ...['A', 'AA', 'AAA', 'AAAA', signature].flatMap((more) => [signature + more, more + signature]),
    ...[
      bytes.toReversed(),
      Buffer.concat([bytes.subarray(half), bytes.subarray(0, half)]),
      Buffer.concat([bytes.subarray(0, half), Buffer.alloc(half)]),
      Buffer.concat([Buffer.alloc(half), bytes.subarray(half)]),
      Buffer.alloc(bytes.length),
      Buffer.alloc(bytes.length, 255),
      Buffer.concat([Buffer.alloc(1), bytes]),
    ].map((other) => Buffer.from(other).toString('base64url')),
  ];
}

describe('of a signature the service says what jose says', () => {
  test.each(ALGORITHMS)('%s', { timeout: 60_000 }, async (alg) => {
    const key = keys.find((one) => one.alg === alg) as IssuerKey;
    const others = keys.filter((one) => one !== key);
    const token = await verifier.issuer.sign({}, {}, { key });
    const signed = token.slice(0, token.lastIndexOf('.'));
    const signatures = [
      ...mutantsOf(token.slice(signed.length + 1)),
      ...(await Promise.all(
        others.map(async (other) => (await verifier.issuer.sign({}, {}, { key: other })).split('.')[2]),
      )),
    ];
    const candidates = [token, ...signatures.map((signature) => `${signed}.${signature}`)];

    const verdicts = await Promise.all(candidates.map((candidate) => verifier.judge(candidate)));

    expect(verdicts).toEqual(await Promise.all(candidates.map((candidate) => judgedByJose(candidate, key))));
    expect(verdicts.filter((status) => status === 200).length).toBeGreaterThan(0);
    expect(verdicts.filter((status) => status === 401).length).toBeGreaterThan(500);
  });
});

describe('of claims the service says what jose says', () => {
  const now = Math.floor(Date.now() / 1000);
  const moment = fc.constantFrom<unknown>(
    undefined,
    null,
    now - 3600,
    now + 3600,
    now + 3600.5,
    -1,
    0,
    2e11,
    '1',
    [],
  );

  test('whatever they are', { timeout: 60_000 }, async () => {
    const key = keys.find(({ alg }) => alg === 'RS256') as IssuerKey;
    const { issuer, audience } = verifier.issuer;
    const claims = fc.record(
      {
        iss: fc.oneof({ weight: 4, arbitrary: fc.constant(issuer) }, fc.jsonValue()),
        aud: fc.oneof(
          { weight: 4, arbitrary: fc.constantFrom(audience, [audience], ['other', audience]) },
          fc.jsonValue(),
        ),
        exp: fc.oneof({ weight: 4, arbitrary: fc.constant<unknown>(now + 3600) }, moment),
        nbf: moment,
        iat: moment,
        // What else a subject must not be is this service's own rule.
        sub: fc.constantFrom('svc', 'Zoë'),
        extra: fc.jsonValue(),
      },
      { requiredKeys: [] },
    );
    const payload = fc.oneof(
      { weight: 8, arbitrary: claims },
      fc.jsonValue(),
      fc.uint8Array({ maxLength: 64 }),
    );
    const seen = new Set<number>();
    await fc.assert(
      fc.asyncProperty(payload, async (value) => {
        const token = forged({ alg: 'RS256', kid: key.kid }, value, rs256(key));
        const status = await verifier.judge(token);
        seen.add(status);
        expect(status).toBe(await judgedByJose(token, key));
      }),
      { numRuns: 3000 },
    );
    expect([...seen].sort()).toEqual([200, 401]);
  });
});
