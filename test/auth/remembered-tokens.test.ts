import { expect, onTestFinished, test } from 'vitest';
import { startVerifier } from '../stage/keys.ts';
import { times } from '../stage/until.ts';

test.each([
  ['5,000', 5000, 0],
  ['4 MiB, if each has 16 KB', 256, 12_000],
])('of verified tokens the last ones are remembered, at most %s', async (_limit, count, length) => {
  const { issuer, judge, lookups } = await startVerifier({ onTestFinished });
  const key = await issuer.addKey('EdDSA');
  const long = 'x'.repeat(length);
  const tokens = await times(count + 1, (n) => issuer.sign({ n, long }, {}, { key }));
  for (const token of tokens) expect(await judge(token)).toBe(200);
  const { miss } = lookups;

  await judge(tokens.at(-1) as string);
  expect(lookups.miss - miss).toBe(0);
  await judge(tokens[0] as string);
  expect(lookups.miss - miss).toBe(1);
});
