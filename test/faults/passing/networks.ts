import { setTimeout as sleep } from 'node:timers/promises';
import { errorResponse, isCreated, messagesThrough } from '../../stage/postgres-messages.ts';
import { TROUBLES } from '../rows/networks.ts';
import type { PassingFault } from './passing-fault.ts';

const troubles = Object.entries(TROUBLES).map(
  ([name, bringAbout]): PassingFault => ({
    name: `network: ${name}`,
    async bringAbout({ proxy, random }) {
      await bringAbout(proxy);
      await sleep(1000 + random.below(4000));
      await proxy.pass();
    },
  }),
);

/** What may become of the bytes between the service and PostgreSQL. */
export const networkFaults: readonly PassingFault[] = [
  ...troubles,
  {
    name: 'connections-forgotten',
    async bringAbout({ proxy, random }) {
      proxy.forget();
      await sleep(2000 + random.below(4000));
      // PostgreSQL, too, learns that the dead are dead.
      proxy.cutAll();
    },
  },
  {
    name: 'outcome-unknown',
    async bringAbout({ proxy }) {
      let left = 5;
      proxy.answersThrough(() =>
        messagesThrough((type, message) => {
          if (left === 0 || !isCreated(type, message)) return message;
          left -= 1;
          return errorResponse('40003');
        }),
      );
      proxy.cutAll();
      await sleep(3000);
      await proxy.pass();
    },
  },
];
