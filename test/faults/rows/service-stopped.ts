import { setTimeout as sleep } from 'node:timers/promises';
import { type Job, type Outcome, PATIENCE_MS, runLoads } from '../../lab/load/load.ts';
import { USERS, wireOf } from '../../lab/load/wire.ts';
import { goodputOf } from '../../overload/table.ts';
import { times } from '../../stage/until.ts';
import type { Row } from '../run-row.ts';

export const serviceStopped: Row = {
  name: 'service-stopped',
  promise:
    'The process is stopped for 3 of 20 seconds, as while a virtual machine moves: ten callers that give up after a second, and connect again, get at least 40 % of their responses.',
  trials: 4,
  brief: 2,
  async run({ startService, issuer, tries, claim }) {
    const service = await startService();
    const port = Number(new URL(service.url).port);
    const jobOf = async (sub: string, connections: number, seconds: number, rate?: number): Promise<Job> => {
      const list = [wireOf({ method: 'GET', target: `${USERS}?limit=1`, token: await issuer.sign({ sub }) })];
      return { port, requests: { list }, patienceMs: PATIENCE_MS, connections, rate, queues: true, seconds };
    };
    const [peak] = await runLoads(await jobOf('a', 64, 3));
    // Together they send half of what can be served.
    const rate = Math.round(goodputOf(peak as Outcome) / 20);
    for (const trial of tries()) {
      const callers = await times(10, (index) => jobOf(`caller-${index}`, 64, 20, rate));
      // A further one sends as much as few connections carry, or many.
      const greedy = await jobOf('greedy', trial % 2 ? 200 : 20, 20);
      const loads = runLoads(...callers);
      const greedyLoad = runLoads(greedy);
      await sleep(2000);
      service.signal('SIGSTOP');
      await sleep(3000);
      service.signal('SIGCONT');
      const shares = (await loads).map(({ answered, due }) => answered / due);
      await greedyLoad;
      claim('each caller gets at least 40 % of its responses', Math.min(...shares) >= 0.4, shares);
    }
  },
};
