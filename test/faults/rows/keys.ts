import { setTimeout as sleep } from 'node:timers/promises';
import { createCaller } from '../../lab/load/caller.ts';
import { MOODS, type Mood } from '../../lab/stage/key-server.ts';
import { until } from '../../stage/until.ts';
import type { Row } from '../run-row.ts';

/** How long a mood lasts, in seconds: more than two refreshes. */
const DURATION_S = 12;

/** In seconds. */
const REFRESH_S = 5;
const REFRESHED = { SVC_OAUTH_JWKS_REFRESH: String(REFRESH_S) };

/** In milliseconds: a new key is known within two seconds and the time of one fetch. */
const NEW_KEY_LIMIT_MS = 2500;

export const keysAwayAtStart: Row = {
  name: 'keys-away-at-start',
  promise:
    'The identity provider is away at the start: 503 with Retry-After, fetches with growing pauses, recovery.',
  trials: 3,
  async run({ startService, issuer, tries, claim, recovered }) {
    for (const trial of tries()) {
      issuer.feel(MOODS[trial % MOODS.length] ?? 'slow');
      const fetchesBefore = issuer.fetches;
      const service = await startService();
      const callers = service.caller(10);
      const begun = performance.now();
      while (performance.now() - begun < DURATION_S * 1000) {
        const responses = await Promise.all(Array.from({ length: 10 }, () => callers.read('?limit=1')));
        const odd = responses.filter(
          ({ status, responseHeaders }) => status !== 503 || !(Number(responseHeaders['retry-after']) > 0),
        );
        claim('all are 503 with Retry-After', odd.length === 0, odd[0]);
        await sleep(100);
      }
      const fetches = issuer.fetches - fetchesBefore;
      claim('there are few fetches', fetches > 0 && fetches <= DURATION_S / 2 + 1, fetches);
      issuer.feel('well');
      const well = performance.now();
      await until('a caller is let in', async () => (await callers.read('?limit=1')).status === 200, {
        seconds: 15,
      });
      recovered((performance.now() - well) / 1000);
      callers.close();
    }
  },
};

export const keysAwayLater: Row = {
  name: 'keys-away-later',
  promise:
    'The identity provider is away, slow, or sends garbage: valid tokens go on, memory is flat, one warning.',
  trials: MOODS.length,
  brief: 1,
  async run({ startService, issuer, trials, claim, tried, figures }) {
    const service = await startService(REFRESHED);
    const callers = service.caller(8);
    await call('well', 3);
    const warm = service.memoryGrowth();
    for (const mood of MOODS.slice(0, trials)) {
      const warnings = service.events('jwks_refresh_failed').length;
      const fetches = issuer.fetches;
      issuer.feel(mood);
      await call(mood, DURATION_S);
      claim(
        `the keys were asked for while it was ${mood}`,
        issuer.fetches > fetches,
        issuer.fetches - fetches,
      );
      const warned = service.events('jwks_refresh_failed').length - warnings;
      claim(`there is one warning while it is ${mood}`, warned === 1, warned);
      issuer.feel('well');
      const before = issuer.fetches;
      // Pauses after failures grow to ten seconds.
      await until('the keys are fetched again', () => issuer.fetches > before, { seconds: 15 });
      tried();
    }
    callers.close();
    figures.memoryChange = service.memoryGrowth() - warm;
    claim('memory is flat', figures.memoryChange < 60, figures.memoryChange);

    async function call(mood: Mood, seconds: number): Promise<void> {
      const end = performance.now() + seconds * 1000;
      while (performance.now() < end) {
        const responses = await Promise.all(Array.from({ length: 8 }, () => callers.read('?limit=1')));
        const odd = responses.filter(({ status }) => status !== 200);
        claim(`valid tokens are accepted while it is ${mood}`, odd.length === 0, odd[0]?.status);
        await sleep(20);
      }
    }
  },
};

export const keyRotation: Row = {
  name: 'key-rotation',
  promise:
    'The keys change: a new one is accepted within two seconds, a removed one refused after the next refresh.',
  trials: 10,
  brief: 1,
  async run({ startService, issuer, tries, claim, recovered, random }) {
    const service = await startService(REFRESHED);
    const as = (token: string) => createCaller({ ...service, token: async () => token });
    let old = as(await issuer.sign());
    claim('the first key is accepted', (await old.read('?limit=1')).status === 200);
    for (const _ of tries()) {
      await sleep(random.below(3000));
      // First both are there, then the old one goes.
      await issuer.addKey();
      const next = as(await issuer.sign());
      const begun = performance.now();
      while ((await next.read('?limit=1')).status !== 200 && performance.now() - begun < 10_000)
        await sleep(20);
      const taken = performance.now() - begun;
      recovered(taken / 1000);
      claim('a new key is accepted in time', taken <= NEW_KEY_LIMIT_MS, taken);
      claim('the old key is accepted meanwhile', (await old.read('?limit=1')).status === 200);
      await issuer.rotate();
      const removed = [old, next];
      await sleep((REFRESH_S + 1) * 1000);
      for (const caller of removed) {
        const { status } = await caller.read('?limit=1');
        claim('a removed key is refused after the refresh', status === 401, status);
        caller.close();
      }
      old = as(await issuer.sign());
      claim('the key that is left is accepted', (await old.read('?limit=1')).status === 200);
    }
    old.close();
  },
};
