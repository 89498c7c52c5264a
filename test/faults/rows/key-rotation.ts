import { setTimeout as sleep } from 'node:timers/promises';
import { createCaller } from '../../lab/load/caller.ts';
import type { Row } from '../run-row.ts';

/** In milliseconds: a new key is known within two seconds and the time of one fetch. */
const NEW_KEY = 2500;
const REFRESH = 5;

export const keyRotation: Row = {
  name: 'key-rotation',
  promise:
    'The keys change: a new one is accepted within two seconds, a removed one refused after the next refresh.',
  trials: 10,
  brief: 1,
  async run({ startService, issuer, tries, claim, recovered, random }) {
    const service = await startService({ SVC_OAUTH_JWKS_REFRESH: String(REFRESH) });
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
      claim('a new key is accepted in time', taken <= NEW_KEY, taken);
      claim('the old key is accepted meanwhile', (await old.read('?limit=1')).status === 200);
      await issuer.rotate();
      const removed = [old, next];
      await sleep((REFRESH + 1) * 1000);
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
