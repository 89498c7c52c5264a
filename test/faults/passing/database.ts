import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from '../../lab/stage/stage.ts';
import { holdUsers } from '../../stage/locks.ts';
import type { PassingFault, Surroundings } from './passing-fault.ts';

/** PostgreSQL is away for up to three seconds. */
async function away({ postgres, random }: Surroundings, leave: Stage['postgres']['kill']): Promise<void> {
  await leave();
  await sleep(random.below(3000));
  await postgres.start();
}

/** PostgreSQL as a whole: its sessions, its processes, its locks, its willingness to write. */
export const databaseFaults: readonly PassingFault[] = [
  {
    name: 'sessions-killed',
    async bringAbout({ postgres, random }) {
      for (let times = 0; times < 10; times += 1) {
        await postgres.terminate();
        await sleep(random.below(400));
      }
    },
  },
  {
    name: 'postgres-restarted',
    bringAbout: (surroundings) => away(surroundings, surroundings.postgres.shutDown),
  },
  {
    name: 'postgres-crashed',
    bringAbout: (surroundings) => away(surroundings, surroundings.postgres.kill),
  },
  {
    name: 'postgres-frozen',
    async bringAbout({ postgres, random }) {
      await postgres.freeze();
      await sleep(2000 + random.below(6000));
      postgres.thaw();
    },
  },
  {
    name: 'postgres-read-only',
    async bringAbout({ postgres, random }) {
      await postgres.query('ALTER DATABASE postgres SET default_transaction_read_only = on');
      await postgres.terminate();
      await sleep(2000 + random.below(4000));
      await postgres.query([
        'SET default_transaction_read_only = off',
        'ALTER DATABASE postgres RESET default_transaction_read_only',
      ]);
    },
  },
  {
    name: 'table-locked',
    async bringAbout({ postgres, service, random }) {
      const callers = service.caller(100);
      const lock = await holdUsers(postgres);
      const answers = Array.from({ length: 100 }, () => callers.read('?limit=1'));
      await sleep(1000 + random.below(4000));
      await lock.release();
      await Promise.all(answers);
      callers.close();
    },
  },
];
