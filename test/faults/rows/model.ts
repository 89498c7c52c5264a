import { setTimeout as sleep } from 'node:timers/promises';
import { startCallers } from '../../lab/load/callers.ts';
import type { Row } from '../run-row.ts';

const CALLERS = 32;

export const model: Row = {
  name: 'model',
  searchesModel: true,
  promise:
    '32 callers do at random all that a caller may: one order fits all responses, changes and the table.',
  trials: 60_000,
  brief: 6000,
  async run({ startService, trials, random, claim, tried }) {
    const service = await startService();
    const callers = startCallers(service, CALLERS, random.branch());
    while (service.ledger.entries.length < trials) await sleep(50);
    await callers.stop();
    for (const { status } of service.ledger.entries) if (status !== 0) tried();
    const statuses = service.ledger.refusedByStatus();
    claim(
      'there were conflicts of all kinds',
      ['404', '409', '412'].every((status) => (statuses[status] ?? 0) > 0),
      statuses,
    );
    claim('nothing was refused for want of anything', (statuses[503] ?? 0) === 0, statuses);
    await service.checkBooks();
  },
};

export const modelUnderFaults: Row = {
  name: 'model-under-faults',
  searchesModel: true,
  promise:
    'The model while sessions are killed, PostgreSQL crashes and freezes: one order fits all the same.',
  trials: 40,
  brief: 3,
  async run({ startService, postgres, tries, random, claim }) {
    const service = await startService();
    const callers = startCallers(service, CALLERS, random.branch());
    for (const trial of tries()) {
      await sleep(500 + random.below(1000));
      const fault = trial % 3;
      if (fault === 0) await postgres.terminate();
      else if (fault === 1) {
        await postgres.kill();
        await postgres.start();
      } else {
        await postgres.freeze();
        await sleep(random.below(6000));
        postgres.thaw();
      }
    }
    await sleep(1000);
    await callers.stop();
    claim('the faults cost some requests a 503', service.ledger.refusedAfter(0) > 0);
    await service.checkBooks();
  },
};
