import { setTimeout as sleep } from 'node:timers/promises';
import { holdUsers, untilUnderWay } from '../../stage/locks.ts';
import type { Row } from '../run-row.ts';

const RESPONSE_LIMIT_MS = 5000;
const HEALTH_LIMIT_MS = 100;
const READY_LIMIT_MS = 1000;

export const poolExhausted: Row = {
  name: 'pool-exhausted',
  promise:
    'The table is locked and 200 requests come: 503 in time; /health within 100 ms, /ready within a second.',
  trials: 5,
  brief: 1,
  async run({ startService, postgres, tries, claim }) {
    const service = await startService();
    const callers = service.caller(200);
    for (const _ of tries()) {
      const lock = await holdUsers(postgres);
      const responses = Promise.all(Array.from({ length: 200 }, () => callers.read('?limit=1')));
      await untilUnderWay(2, postgres);
      for (let look = 0; look < 10; look += 1) {
        await timed('/health', HEALTH_LIMIT_MS);
        await timed('/ready', READY_LIMIT_MS);
        await sleep(200);
      }
      const statuses = [...new Set((await responses).map(({ status }) => status))];
      claim('all are 503', statuses.join() === '503', statuses);
      await lock.release();
    }
    const { ledger } = service;
    claim('every answer is in time', ledger.longestResponse() <= RESPONSE_LIMIT_MS, ledger.longestResponse());

    async function timed(path: string, limit: number): Promise<void> {
      const begun = performance.now();
      const { status } = await fetch(service.url + path);
      const taken = performance.now() - begun;
      claim(`${path} is 200 within ${limit} ms`, status === 200 && taken <= limit, { status, taken });
    }
  },
};
