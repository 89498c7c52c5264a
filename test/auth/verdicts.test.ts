import { afterAll, describe, expect, test } from 'vitest';
import { ALGORITHMS } from '../../lib/settings/setting-forms.ts';
import { startVerifier } from '../stage/keys.ts';

const ALPHABET = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';

const { issuer, judge } = await startVerifier({ onTestFinished: afterAll }, { algorithms: ALGORITHMS });
const keys = await Promise.all(ALGORITHMS.map((alg) => issuer.addKey(alg)));

/**
 * Texts similar to a signature: with other characters at the ends, shorter, longer, or with the bytes in another
 * order.
 */
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

describe('only the signature itself is accepted among similar texts', () => {
  test.each(keys)('$alg', { timeout: 180_000 }, async (key) => {
    const others = keys.filter((one) => one !== key);
    const token = await issuer.sign({}, {}, { key });
    const signed = token.slice(0, token.lastIndexOf('.'));
    const signatures = [
      ...mutantsOf(token.slice(signed.length + 1)),
      ...(await Promise.all(
        others.map(async (other) => (await issuer.sign({}, {}, { key: other })).split('.')[2]),
      )),
    ];
    const candidates = [token, ...signatures.map((signature) => `${signed}.${signature}`)];

    const verdicts = await Promise.all(candidates.map(judge));

    expect(verdicts).toEqual(candidates.map((candidate) => (candidate === token ? 200 : 401)));
    expect(verdicts.filter((status) => status === 401).length).toBeGreaterThan(500);
  });
});
