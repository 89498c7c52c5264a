import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from '../../lab/stage/stage.ts';
import type { Row } from '../run-row.ts';

/** In milliseconds, from the moment in which PostgreSQL accepts again. */
const FIRST_SUCCESS = 1000;
const LAST_REFUSAL = 2000;

/** PostgreSQL is taken away under 32 writers, and comes back: again and again. */
async function interrupted(stage: Stage, leave: () => Promise<void>): Promise<void> {
  const { startService, postgres, tries, random, claim, recovered } = stage;
  const service = await startService();
  const load = service.startLoad(32);
  for (const _ of tries()) {
    await sleep(500 + random.below(1000));
    await leave();
    const ready = await fetch(`${service.url}/ready`);
    claim('/ready is 503 meanwhile', ready.status === 503, ready.status);
    await postgres.start();
    const accepts = performance.now();
    await sleep(LAST_REFUSAL + 500);
    const first = Math.min(...service.ledger.successesAfter(accepts).map(({ answered }) => answered));
    recovered((first - accepts) / 1000);
    claim('the first success is within a second', first - accepts <= FIRST_SUCCESS, first - accepts);
    const late = service.ledger.refusedAfter(accepts + LAST_REFUSAL);
    claim('nothing is refused after two seconds', late === 0, late);
  }
  await load.stop();
  await service.checkBooks();
}

export const postgresRestarted: Row = {
  name: 'postgres-restarted',
  promise:
    'PostgreSQL restarts under 32 writers: 503 meanwhile, service within a second, every acknowledged write kept.',
  trials: 10,
  run: (stage) => interrupted(stage, stage.postgres.shutDown),
};

export const postgresCrashed: Row = {
  name: 'postgres-crashed',
  promise: 'All of PostgreSQL is killed under 32 writers: as when it restarts.',
  trials: 20,
  brief: 2,
  run: (stage) => interrupted(stage, stage.postgres.kill),
};

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
