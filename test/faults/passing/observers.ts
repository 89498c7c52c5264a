import { setTimeout as sleep } from 'node:timers/promises';
import type { PassingFault } from './passing-fault.ts';

/** Who reads the log and takes the spans; and the machine, which stands still. */
export const observerFaults: readonly PassingFault[] = [
  {
    name: 'log-reader-stalled',
    async bringAbout({ service, logReader }) {
      const callers = service.caller(20);
      logReader.stall();
      // More than the pipe holds, and the queue before it.
      await Promise.all(Array.from({ length: 400 }, () => callers.read('/x'.repeat(2500))));
      await sleep(3000);
      logReader.resume();
      callers.close();
    },
  },
  {
    name: 'collector-unwell',
    async bringAbout({ collector, random }) {
      const isHanging = random.chance(0.5);
      collector.answer((response) => {
        if (!isHanging) response.writeHead(500).end();
      });
      await sleep(8000);
      collector.answerNormally();
    },
  },
  {
    name: 'service-stopped',
    async bringAbout({ service, random }) {
      service.signal('SIGSTOP');
      await sleep(1000 + random.below(3000));
      service.signal('SIGCONT');
    },
  },
];
