import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startVerifier } from '../stage/keys.ts';
import { until } from '../stage/until.ts';

const unknownKey = { kid: 'unknown' };

// Concurrently, because some of them wait for seconds.
describe.concurrent('while the identity provider is unavailable', () => {
  test('a token with no keys to verify it is 503, and the pauses between two fetches grow to 10 seconds', async (context) => {
    const { issuer, judge, pass } = await startVerifier(context, { isClockStopped: true });
    issuer.answer((_request, response) => response.writeHead(500).end());
    const token = await issuer.sign();
    const pauses: number[] = [];
    expect(await judge(token)).toBe(503);

    for (let pause = 0; pauses.length < 6; ) {
      const { fetches } = issuer;
      pass(0.5);
      pause += 0.5;
      expect(await judge(token)).toBe(503);
      if (issuer.fetches === fetches) continue;
      pauses.push(pause);
      pause = 0;
    }

    expect(pauses).toEqual([2, 4, 8, 10, 10, 10]);
  });

  test('a token with an unknown key is 503 also after a successful start, and one with a known key is accepted', async (context) => {
    const { issuer, judge, pass } = await startVerifier(context, { isClockStopped: true });
    const token = await issuer.sign();
    expect(await judge(token)).toBe(200);
    issuer.answer((_request, response) => response.writeHead(500).end());
    pass(3);

    expect(await judge(await issuer.sign({}, unknownKey))).toBe(503);
    expect(await judge(token)).toBe(200);
    expect(await judge(await issuer.sign({ jti: 'another' }))).toBe(200);
  });

  test('the last good key set is used for 24 hours, and then tokens are 503', async (context) => {
    const { issuer, judge, pass } = await startVerifier(context, { isClockStopped: true });
    const token = await issuer.sign();
    expect(await judge(token)).toBe(200);
    await issuer.stop();

    pass(24 * 3600 - 1);
    expect(await judge(token)).toBe(200);
    expect(await judge(await issuer.sign({ jti: 'another' }))).toBe(200);
    pass(1);
    expect(await judge(token)).toBe(503);
    expect(await judge(await issuer.sign({ jti: 'a third' }))).toBe(503);

    await issuer.restart();
    pass(10);
    expect(await judge(token)).toBe(200);
  });

  test('valid tokens are accepted at once, also if the provider responds slowly', async (context) => {
    const { issuer, keySet, judge, pass } = await startVerifier(context, { refreshEvery: 200 });
    keySet.start();
    const token = await issuer.sign();
    await judge(token);
    issuer.answer(() => {});
    const { fetches } = issuer;
    await until('a fetch', () => issuer.fetches > fetches);
    // The keys are overdue, and the pause between two fetches is over.
    pass(2.1);

    expect(await judge(token)).toBe(200);
    expect(await judge(await issuer.sign({ jti: 'another' }))).toBe(200);
    expect(keySet.refreshes.failed).toBe(0);
  });
});

test.concurrent('a token whose key is being fetched when the key set is stopped cannot be verified', async (context) => {
  const { issuer, keySet, judge, pass } = await startVerifier(context);
  await judge(await issuer.sign());
  await issuer.addKey('ES256');
  issuer.answer(() => {});
  pass(2.1);
  const { fetches } = issuer;
  const judging = judge(await issuer.sign());
  await until('the fetch', () => issuer.fetches > fetches);
  keySet.stop();

  expect(await judging).toBe(503);
});

test.concurrent('a stopped key set sends no more fetches', async (context) => {
  const { issuer, keySet, judge } = await startVerifier(context, { refreshEvery: 100 });
  keySet.start();
  await judge(await issuer.sign());
  keySet.stop();
  const { fetches } = issuer;
  await sleep(400);

  expect(issuer.fetches).toBe(fetches);
});
