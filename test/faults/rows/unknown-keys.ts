import { setTimeout as sleep } from 'node:timers/promises';
import { encoded } from '../../stage/forge.ts';
import { createCaller } from '../caller.ts';
import { Ledger } from '../ledger.ts';
import { percentile } from '../percentile.ts';
import type { Row } from '../run-row.ts';

/** Tokens of unknown keys per second: many, and no more than leaves the processor to others. */
const RATE = 800;

export const unknownKeys: Row = {
  name: 'unknown-keys',
  promise:
    'A storm of tokens with unknown keys: one fetch in two seconds at most, and valid callers notice nothing.',
  trials: 100_000,
  brief: 2000,
  async run({ startService, issuer, trials, claim, tried, token, openLedger, figures }) {
    const service = await startService();
    const { url } = service;
    const calm = await latencies(new Ledger(), 3000);
    const [header = '', payload = '', signature = ''] = (await token()).split('.');
    const parsed = JSON.parse(Buffer.from(header, 'base64url').toString());
    const forge = () => `${encoded({ ...parsed, kid: crypto.randomUUID() })}.${payload}.${signature}`;
    const storm = createCaller({ url, token: async () => forge(), ledger: service.ledger, connections: 50 });
    const fetches = issuer.fetches;
    const begun = performance.now();
    let isOver = false;
    const valid = openLedger();
    const meanwhile = latencies(valid, undefined, () => isOver);
    const answers: Promise<unknown>[] = [];
    const statuses = new Set<number>();
    let warm = 0;
    for (let sent = 0; sent < trials; sent += RATE / 50) {
      // What V8 keeps for so many requests at once is no growth.
      if (sent <= trials / 10) warm = service.memoryGrowth();
      for (let n = 0; n < RATE / 50; n += 1) {
        answers.push(storm.read('?limit=1').then(({ status }) => statuses.add(status)));
        tried();
      }
      await sleep(20);
    }
    await Promise.all(answers);
    isOver = true;
    const stormy = await meanwhile;
    const seconds = (performance.now() - begun) / 1000;
    storm.close();
    claim('all are 401', [...statuses].join() === '401', [...statuses]);
    const asked = issuer.fetches - fetches;
    claim('there is one fetch in two seconds at most', asked <= seconds / 2 + 2, { asked, seconds });
    claim('valid callers are all served', valid.refusedAfter(0) === 0, valid.refusedAfter(0));
    const [before, during] = [percentile(calm, 0.99), percentile(stormy, 0.99)];
    claim('valid callers wait no longer', during <= Math.max(2 * before, before + 20), { before, during });
    figures.memoryChange = service.memoryGrowth() - warm;
    claim('memory is flat', figures.memoryChange < 60, figures.memoryChange);

    /** How long each of a valid caller's requests takes, for so many milliseconds or until it is over. */
    async function latencies(ledger: Ledger, milliseconds = Number.POSITIVE_INFINITY, isDone = () => false) {
      const caller = createCaller({ url, token, ledger });
      const end = performance.now() + milliseconds;
      const taken: number[] = [];
      while (performance.now() < end && !isDone()) {
        const { sent, answered } = await caller.read('?limit=1');
        taken.push(answered - sent);
        await sleep(5);
      }
      caller.close();
      return taken;
    }
  },
};
