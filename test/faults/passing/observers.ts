import { setTimeout as sleep } from 'node:timers/promises';
import type { PassingFaults } from './passing-fault.ts';

/** Who reads the log and takes the spans; and the machine, which stands still. */
export const observerFaults: PassingFaults = {
  async 'log-reader-stalled'({ service, logReader }) {
    const callers = service.caller(20);
    logReader.isStalled = true;
    // More than the pipe holds, and the queue before it.
    await Promise.all(Array.from({ length: 400 }, () => callers.read('/x'.repeat(2500))));
    await sleep(3000);
    logReader.isStalled = false;
    callers.close();
  },
  async 'collector-unwell'({ collector, random }) {
    const isHanging = random.chance(0.5);
    collector.answer((response) => {
      if (!isHanging) response.writeHead(500).end();
    });
    await sleep(8000);
    collector.answerNormally();
  },
  async 'service-stopped'({ service, random }) {
    service.signal('SIGSTOP');
    await sleep(1000 + random.below(3000));
    service.signal('SIGCONT');
  },
};
