import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { startVerifier } from '../stage/keys.ts';
import type { IssuerKey } from '../stage/tokens.ts';
import { BUSY_S, times } from '../stage/until.ts';

const unknownKey = (index: number) => ({ kid: `unknown-${index}` });

// Concurrently, because some of them wait for up to two seconds between two fetches.
describe.concurrent('the keys', () => {
  test('are not fetched before the service starts or the first token arrives', async (context) => {
    const { issuer, judge } = await startVerifier(context);
    await sleep(200);
    expect(issuer.fetches).toBe(0);

    expect(await judge(await issuer.sign())).toBe(200);
    expect(issuer.fetches).toBe(1);
  });

  test('are fetched once for any number of waiting tokens', async (context) => {
    const { issuer, judge } = await startVerifier(context);
    const tokens = await times(50, (index) => issuer.sign({ jti: `${index}` }));
    issuer.answer(async (_request, response) => {
      await sleep(200);
      response.end(JSON.stringify({ keys: issuer.keys.map(({ publicJwk }) => publicJwk) }));
    });

    const statuses = await Promise.all(tokens.map(judge));

    expect(statuses).toEqual(tokens.map(() => 200));
    expect(issuer.fetches).toBe(1);
  });
});

describe.concurrent('after a rotation', () => {
  test('a new key is accepted at its first use if the last fetch is 2 seconds old', async (context) => {
    const { issuer, judge, pass } = await startVerifier(context);
    await judge(await issuer.sign());
    await issuer.addKey('ES256');
    pass(2.1);

    expect(await judge(await issuer.sign())).toBe(200);
  });

  test('of two keys whose tokens were accepted before, a refresh in the background refuses only the removed one', async (context) => {
    const { issuer, judge, untilJudged, lookups, keySet } = await startVerifier(context, {
      refreshEvery: 500,
    });
    const removed = issuer.keys[0] as IssuerKey;
    const kept = await issuer.addKey('ES256');
    keySet.start();
    const tokens = await Promise.all([removed, kept].map((key) => issuer.sign({}, {}, { key })));
    const [ofRemoved, ofKept] = tokens as [string, string];
    for (const token of [...tokens, ...tokens]) expect(await judge(token)).toBe(200);
    expect(lookups.hit).toBe(2);

    issuer.publish([kept.publicJwk]);
    await untilJudged(ofRemoved, 401);
    expect(await judge(ofKept)).toBe(200);
    expect(await judge(ofRemoved)).toBe(401);
  });

  test.for<readonly [string, boolean]>([
    ['a known kid', true],
    ['no kid', false],
  ])(
    'a new key with %s replaces the old one within 2 seconds, while other tokens stay remembered',
    async ([, isNamed], context) => {
      const { issuer, judge, lookups, untilJudged } = await startVerifier(context);
      const [old] = issuer.keys as [IssuerKey];
      const kept = await issuer.addKey('EdDSA');
      const ofKept = await issuer.sign({}, {}, { key: kept });
      const ofOld = await issuer.sign({}, {}, { key: old });
      for (const token of [ofOld, ofKept]) expect(await judge(token)).toBe(200);
      const next = await issuer.addKey('ES256');
      const { kid: _kid, ...unnamed } = next.publicJwk;
      // The order of members means nothing, and a token may have several audiences.
      const reordered = Object.fromEntries(Object.entries(kept.publicJwk).reverse());
      const renamed = isNamed ? { ...unnamed, kid: old.kid } : unnamed;
      issuer.publish([renamed, reordered]);
      const token = await issuer.sign(
        { aud: ['a third', issuer.audience] },
        { kid: isNamed ? old.kid : undefined },
        { key: next },
      );

      expect(await untilJudged(token, 200)).toBeLessThan(2000 + 1000 * BUSY_S);
      expect(issuer.fetches).toBe(2);
      const { hit } = lookups;
      expect(await judge(ofKept)).toBe(200);
      expect(lookups.hit).toBe(hit + 1);
      expect(await judge(ofOld)).toBe(401);
    },
  );

  test.for([310, -310])(
    'a process that was frozen fetches overdue keys before it verifies a token: its clock differs by %i s',
    async (difference, context) => {
      const { issuer, judge, pass } = await startVerifier(context);
      const token = await issuer.sign();
      expect(await judge(token)).toBe(200);
      await issuer.rotate('ES256');
      // Then the pause between two fetches is over for a clock that was set back, too.
      await sleep(2100);
      pass(difference);

      expect(await judge(token)).toBe(401);
      expect(await judge(await issuer.sign())).toBe(200);
    },
  );
});

describe.concurrent('when the clock is set back by an hour', () => {
  test('the keys are refreshed, and a removed key is refused', async (context) => {
    const { issuer, keySet, judge, untilJudged, pass } = await startVerifier(context, {
      refreshEvery: 3000,
    });
    keySet.start();
    const token = await issuer.sign();
    expect(await judge(token)).toBe(200);
    pass(-3600);
    // Also if a token of an unknown key has arrived in between.
    expect(await judge(await issuer.sign({}, unknownKey(1)))).toBe(401);
    await issuer.rotate('ES256');

    expect(await untilJudged(token, 401)).toBeLessThan(5000 + 1000 * BUSY_S);
  });

  test('a new key is accepted within about two seconds', async (context) => {
    const { issuer, judge, untilJudged, pass } = await startVerifier(context);
    await judge(await issuer.sign());
    pass(-3600);
    await issuer.addKey('ES256');

    expect(await untilJudged(await issuer.sign(), 200)).toBeLessThan(2000 + 1000 * BUSY_S);
  });
});

describe.concurrent('many tokens with unknown keys', () => {
  test('cause at most one fetch per 2 seconds, and are all refused', async (context) => {
    const { issuer, judge, pass } = await startVerifier(context, { isClockStopped: true });
    await judge(await issuer.sign());
    const fetchedAt: number[] = [];
    for (let seconds = 0; seconds <= 6; seconds += 0.5) {
      const { fetches } = issuer;
      const storm = await times(50, async (index) =>
        judge(await issuer.sign({}, unknownKey(seconds * 100 + index))),
      );
      expect(new Set(storm)).toEqual(new Set([401]));
      expect(await judge(await issuer.sign({ jti: `${seconds}` }))).toBe(200);
      if (issuer.fetches > fetches) fetchedAt.push(seconds);
      pass(0.5);
    }

    expect(fetchedAt).toEqual([2, 4, 6]);
    expect(issuer.fetches).toBe(4);
  });
});

describe.concurrent('many tokens with a known kid and a bad signature', () => {
  const forged = async (token: string) => `${token.slice(0, token.lastIndexOf('.'))}.${'A'.repeat(86)}`;

  test('cause fetches after 2, 4, 8 and more seconds, up to a minute, and are 401 whatever the fetches do', async (context) => {
    const { issuer, judge, pass } = await startVerifier(context, { isClockStopped: true });
    const token = await issuer.sign();
    expect(await judge(token)).toBe(200);
    const fetchedAt: number[] = [];
    for (let seconds = 0; seconds <= 140; seconds += 1) {
      const { fetches } = issuer;
      if (seconds === 100) issuer.answer((_request, response) => response.writeHead(500).end());
      const storm = await times(5, async (n) =>
        judge(await forged(await issuer.sign({ jti: `${seconds} ${n}` }))),
      );
      expect(new Set(storm)).toEqual(new Set([401]));
      expect(issuer.fetches - fetches).toBeLessThanOrEqual(1);
      if (issuer.fetches > fetches) fetchedAt.push(seconds);
      pass(1);
    }

    expect(fetchedAt).toEqual([2, 4, 8, 16, 32, 64, 124]);
    expect(await judge(token)).toBe(200);
  });

  test.for<readonly [string, object]>([
    ['iss', { iss: 'https://other.example.com' }],
    ['aud', { aud: 'other' }],
    ['exp', { exp: 1 }],
  ])('cause no fetch if their %s would not be accepted', async ([, claims], context) => {
    const { issuer, judge, pass } = await startVerifier(context);
    expect(await judge(await issuer.sign())).toBe(200);
    pass(2.1);
    expect(await judge(await forged(await issuer.sign(claims)))).toBe(401);
    expect(issuer.fetches).toBe(1);
  });
});
