import { setTimeout as sleep } from 'node:timers/promises';
import type { Row } from '../run-row.ts';

export const backendsKilled: Row = {
  name: 'backends-killed',
  promise: 'Sessions that are killed under 32 writers cost those in flight a 503, and nothing else.',
  trials: 200,
  brief: 30,
  async run({ startService, postgres, tries, trials, random, claim }) {
    const service = await startService();
    const load = service.startLoad(32);
    let killed = 0;
    for (const _ of tries()) {
      await sleep(20 + random.below(100));
      killed += await postgres.terminate();
    }
    await load.stop();
    claim('sessions were killed', killed >= trials, killed);
    await service.checkBooks();
  },
};
