import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from '../../lab/stage/stage.ts';
import { holdUsers } from '../../stage/locks.ts';
import type { PassingFaults, Surroundings } from './passing-fault.ts';

/** PostgreSQL is away for up to three seconds. */
async function away({ postgres, random }: Surroundings, leave: Stage['postgres']['kill']): Promise<void> {
  await leave();
  await sleep(random.below(3000));
  await postgres.start();
}

/** PostgreSQL as a whole: its sessions, its processes, its locks, its willingness to write. */
export const databaseFaults: PassingFaults = {
  async 'sessions-killed'({ postgres, random }) {
    for (let times = 0; times < 10; times += 1) {
      await postgres.terminate();
      await sleep(random.below(400));
    }
  },
  'postgres-restarted': (surroundings) => away(surroundings, surroundings.postgres.shutDown),
  'postgres-crashed': (surroundings) => away(surroundings, surroundings.postgres.kill),
  async 'postgres-frozen'({ postgres, random }) {
    await postgres.freeze();
    await sleep(2000 + random.below(6000));
    postgres.thaw();
  },
  async 'postgres-read-only'({ postgres, random }) {
    await postgres.query('ALTER DATABASE postgres SET default_transaction_read_only = on');
    await postgres.terminate();
    await sleep(2000 + random.below(4000));
    await postgres.query([
      'SET default_transaction_read_only = off',
      'ALTER DATABASE postgres RESET default_transaction_read_only',
    ]);
  },
  async 'table-locked'({ postgres, service, random }) {
    const callers = service.caller(100);
    const lock = await holdUsers(postgres);
    const answers = Array.from({ length: 100 }, () => callers.read('?limit=1'));
    await sleep(1000 + random.below(4000));
    await lock.release();
    await Promise.all(answers);
    callers.close();
  },
};
