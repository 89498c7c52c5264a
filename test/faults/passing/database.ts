import { setTimeout as sleep } from 'node:timers/promises';
import { holdUsers } from '../../stage/locks.ts';
import { errorResponse, findCreates, messagesThrough } from '../../stage/postgres-messages.ts';
import { databaseInterruptions, type Interruption, networkInterruptions } from '../interruptions.ts';
import type { PassingFaults } from './passing-fault.ts';

/** Interruptions that end after `longestMs` at most. */
const passing = (faults: Readonly<Record<string, Interruption>>, longestMs: number): PassingFaults =>
  Object.fromEntries(
    Object.entries(faults).map(([name, begin]) => [
      name,
      async (surroundings) => {
        const end = await begin(surroundings);
        await sleep(surroundings.random.below(longestMs));
        await end();
      },
    ]),
  );

/** PostgreSQL as a whole: its sessions, its processes, its locks, its willingness to write, the network to it and its messages. */
export const databaseFaults: PassingFaults = {
  async 'sessions-killed'({ postgres, random }) {
    for (let times = 0; times < 10; times += 1) {
      await postgres.terminate();
      await sleep(random.below(400));
    }
  },
  ...passing(databaseInterruptions, 8000),
  ...passing(networkInterruptions, 5000),
  async 'table-locked'({ postgres, service, random }) {
    const callers = service.caller(100);
    const lock = await holdUsers(postgres);
    const responses = Array.from({ length: 100 }, () => callers.read('?limit=1'));
    await sleep(1000 + random.below(4000));
    await lock.release();
    await Promise.all(responses);
    callers.close();
  },
  async 'connections-forgotten'({ proxy, random }) {
    proxy.forget();
    await sleep(2000 + random.below(4000));
    // PostgreSQL, too, learns that the dead are dead.
    proxy.cutAll();
  },
  async 'outcome-unknown'({ proxy }) {
    let left = 5;
    proxy.answersThrough(() => {
      const isCreated = findCreates();
      return messagesThrough((type, message) => {
        if (!isCreated(type, message) || left === 0) return message;
        left -= 1;
        return errorResponse('40003');
      });
    });
    proxy.cutAll();
    await sleep(3000);
    await proxy.pass();
  },
};
