import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../stage/until.ts';
import { type RawClient, rawClient } from '../raw-client.ts';
import type { Row } from '../run-row.ts';

const BODY = 65_000;

export const largeBodies: Row = {
  name: 'large-bodies',
  promise: '512 bodies of 64 KiB at once cost 100 MB at most, and a heap of 128 MB survives them.',
  trials: 6,
  brief: 2,
  async run({ startService, trials, claim, tried, figures }) {
    for (const variables of [{}, { NODE_OPTIONS: '--max-old-space-size=128' }]) {
      const service = await startService(variables);
      const callers = service.caller(512);
      const name = 'x'.repeat(BODY);
      for (let trial = 0; trial < trials; trial += 1) {
        const answers = await Promise.all(
          Array.from({ length: 512 }, () => callers.create({ email: 'a@b', full_name: name })),
        );
        const odd = answers.filter(({ status }) => status !== 422 && status !== 503);
        claim('each is 422, or refused at the door', odd.length === 0, odd[0]?.status);
        tried();
      }
      figures.memoryChange = Math.max(figures.memoryChange, service.memoryGrowth());
      claim('it has grown by 100 MB at most', service.memoryGrowth() <= 100, service.memoryGrowth());
      callers.close();
    }
  },
};

export const fewDescriptors: Row = {
  name: 'few-descriptors',
  promise:
    'The process runs out of file descriptors: no crash, and service at once when there are some again.',
  trials: 10,
  brief: 2,
  async run({ startService, trials, claim, tried, recovered }) {
    const runBy = ['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh'];
    const service = await startService({}, { runBy });
    for (let trial = 0; trial < trials; trial += 1) {
      const held: RawClient[] = [];
      for (let n = 0; n < 200; n += 1) {
        const client = await Promise.race([rawClient(service.url), sleep(50)]);
        if (client) held.push(client);
      }
      await sleep(300);
      claim('the process lives', service.isAlive());
      for (const client of held) client.abort();
      const begun = performance.now();
      const caller = service.caller();
      await until('it serves', async () => (await caller.read('?limit=1')).status === 200);
      recovered((performance.now() - begun) / 1000);
      caller.close();
      tried();
    }
  },
};
