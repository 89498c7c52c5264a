import { setTimeout as sleep } from 'node:timers/promises';
import type { ServiceUnderFault, Stage } from '../../lab/stage/stage.ts';
import type { Row } from '../run-row.ts';

/** How long nothing answers, and how long an answer may take, in milliseconds. */
const SILENCE = 10_000;
const LONGEST = 5000;

/** In each trial PostgreSQL falls silent under 32 writers for ten seconds. */
async function silence(
  { tries, claim, recovered, postgres }: Stage,
  service: ServiceUnderFault,
  begin: () => unknown,
  end: () => unknown,
): Promise<void> {
  for (const _ of tries()) {
    const load = service.startLoad(32);
    await sleep(1000);
    await begin();
    await sleep(SILENCE);
    await end();
    const ended = performance.now();
    await sleep(3000);
    await load.stop();
    const { ledger } = service;
    claim('every answer is within 5 seconds', ledger.longestAnswer() <= LONGEST, ledger.longestAnswer());
    const first = Math.min(...ledger.successesAfter(ended).map(({ answered }) => answered));
    recovered((first - ended) / 1000);
    const late = ledger.refusedAfter(ended + 2000);
    claim('nothing is refused two seconds later', first < Number.POSITIVE_INFINITY && late === 0, late);
    const orphans = await postgres.countSessions("state = 'active'");
    claim('no statement is left over', orphans === 0, orphans);
    await service.checkBooks();
  }
}

export const postgresFrozen: Row = {
  name: 'postgres-frozen',
  promise:
    'PostgreSQL is stopped for 10 seconds: every answer within 5, full service afterwards, no orphans.',
  trials: 3,
  brief: 1,
  async run(stage) {
    const service = await stage.startService();
    await silence(stage, service, stage.postgres.freeze, stage.postgres.thaw);
  },
};

export const blackHole: Row = {
  name: 'black-hole',
  promise: 'The network to PostgreSQL swallows everything for 10 seconds: as when it is frozen.',
  trials: 3,
  async run(stage) {
    const proxy = await stage.proxyPostgres();
    const service = await stage.startService(proxy.through);
    await silence(stage, service, proxy.stall, proxy.pass);
  },
};
