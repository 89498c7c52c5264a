import { setTimeout as sleep } from 'node:timers/promises';
import { createCaller } from '../../lab/load/caller.ts';
import { percentile } from '../../lab/meters/percentile.ts';
import { encoded } from '../../stage/forge.ts';
import { repeat } from '../../stage/until.ts';
import type { Row } from '../run-row.ts';

/** Tokens of unknown keys per second: many, and no more than leaves the processor to others. */
const TOKENS_PER_S = 800;

/** Number of storms, each after a calm: a machine that is busy for a while is busy in some of both. */
const STORMS = 10;

const CALM_MS = 1000;

export const unknownKeys: Row = {
  name: 'unknown-keys',
  promise:
    'A storm of tokens with unknown keys: one fetch in two seconds at most, and valid callers are all served, with a p99 at most doubled or 20 ms longer, in the middle of ten storms and the calms before them.',
  trials: 100_000,
  brief: 2000,
  async run({ startService, issuer, trials, claim, tried, token, openLedger, figures }) {
    const service = await startService();
    const { url } = service;
    const [header = '', payload = '', signature = ''] = (await token()).split('.');
    const parsed = JSON.parse(Buffer.from(header, 'base64url').toString());
    const forge = () => `${encoded({ ...parsed, kid: crypto.randomUUID() })}.${payload}.${signature}`;
    const storm = createCaller({ url, token: async () => forge(), ledger: service.ledger, connections: 50 });
    const fetches = issuer.fetches;
    const begun = performance.now();
    const valid = openLedger();
    const calm: number[] = [];
    const stormy: number[] = [];
    const statuses = new Set<number>();
    let warm = 0;
    for (let round = 0; round < STORMS; round += 1) {
      calm.push(await p99Until(sleep(CALM_MS)));
      stormy.push(await p99Until(rage(Math.ceil(trials / STORMS))));
      // What V8 keeps for so many requests at once is no growth.
      if (round === 0) warm = service.memoryGrowth();
    }
    const seconds = (performance.now() - begun) / 1000;
    storm.close();
    claim('all are 401', [...statuses].join() === '401', [...statuses]);
    const asked = issuer.fetches - fetches;
    claim('there is one fetch in two seconds at most', asked <= seconds / 2 + 2, { asked, seconds });
    claim('valid callers are all served', valid.refusedAfter(0) === 0, valid.refusedAfter(0));
    const [before, during] = [percentile(calm, 0.5), percentile(stormy, 0.5)];
    claim(
      'valid callers wait twice as long or 20 ms longer at most',
      during <= Math.max(2 * before, before + 20),
      { before, during },
    );
    figures.memoryChange = service.memoryGrowth() - warm;
    claim('memory is flat', figures.memoryChange < 60, figures.memoryChange);

    async function rage(tokens: number): Promise<void> {
      const responses: Promise<unknown>[] = [];
      for (let sent = 0; sent < tokens; sent += TOKENS_PER_S / 50) {
        for (let n = 0; n < TOKENS_PER_S / 50; n += 1) {
          responses.push(storm.read('?limit=1').then(({ status }) => statuses.add(status)));
          tried();
        }
        await sleep(20);
      }
      await Promise.all(responses);
    }

    async function p99Until(something: Promise<unknown>): Promise<number> {
      const caller = createCaller({ url, token, ledger: valid });
      const taken: number[] = [];
      const stop = repeat(async () => {
        const { sent, answered } = await caller.read('?limit=1');
        taken.push(answered - sent);
        await sleep(5);
      });
      await something.finally(stop);
      caller.close();
      return percentile(taken, 0.99);
    }
  },
};
