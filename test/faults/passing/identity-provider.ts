import { setTimeout as sleep } from 'node:timers/promises';
import { createCaller } from '../../lab/load/caller.ts';
import { MOODS } from '../../lab/stage/key-server.ts';
import { until } from '../../stage/until.ts';
import { FORGERIES, goodTokenParts } from '../forgeries.ts';
import type { PassingFaults } from './passing-fault.ts';

/** In milliseconds: longer than the time between two fetches of a service that fetches every five seconds. */
const DURATION_MS = 8000;

/** The identity provider and its keys, and forged tokens. */
export const identityProviderFaults: PassingFaults = {
  async 'key-server-unwell'({ issuer, random }) {
    issuer.feel(random.pick(MOODS));
    await sleep(DURATION_MS);
    issuer.feel('well');
  },
  async 'keys-rotated'({ issuer, service }) {
    await issuer.rotate();
    const caller = service.caller();
    const isAccepted = async () => (await caller.read('?limit=1')).status === 200;
    await until('the new key is accepted', isAccepted, { seconds: 5 });
    caller.close();
  },
  async 'tokens-forged'({ issuer, service, random, claim }) {
    const parts = goodTokenParts(issuer);
    for (const [name, forge] of Object.entries(FORGERIES)) {
      const forged = createCaller({ ...service, token: async () => forge(parts, random), connections: 8 });
      const responses = await Promise.all(Array.from({ length: 8 }, () => forged.read('?limit=1')));
      const let_in = responses.filter(({ status }) => status >= 200 && status < 300);
      claim(`${name} is let in by nobody`, let_in.length === 0, let_in[0]);
      forged.close();
    }
  },
};
