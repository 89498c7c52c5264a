import { setTimeout as sleep } from 'node:timers/promises';
import { errorResponse, findCreates, messagesThrough } from '../../stage/postgres-messages.ts';
import type { PassingFaults } from './passing-fault.ts';

/** Messages between the service and PostgreSQL that are lost or replaced. */
export const networkFaults: PassingFaults = {
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
