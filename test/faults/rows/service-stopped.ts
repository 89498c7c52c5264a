import { setTimeout as sleep } from 'node:timers/promises';
import { type Job, type Outcome, PATIENCE_MS, runLoads } from '../../lab/load/load.ts';
import { USERS, wireOf } from '../../lab/load/wire.ts';
import { goodputOf } from '../../overload/table.ts';
import { times } from '../../stage/until.ts';
import type { Row } from '../run-row.ts';

type Load = Pick<Job, 'connections'> & Partial<Pick<Job, 'seconds' | 'rate'>> & { readonly path?: string };

/** A further caller sends as much as its connections carry: few, or many. */
const GREEDY: readonly Load[] = [
  { connections: 20 },
  { connections: 200 },
  { path: 'changes?limit=1000', connections: 20 },
  { path: 'changes?limit=1000', connections: 200 },
];

export const serviceStopped: Row = {
  name: 'service-stopped',
  promise:
    'The process is stopped for 3 of 20 seconds, as while a virtual machine moves: ten callers that give up after a second, and connect again, get at least 40 % of their responses.',
  trials: 4,
  brief: 2,
  async run({ startService, postgres, issuer, tries, claim }) {
    const service = await startService();
    await postgres.query(
      `INSERT INTO user_changes_unnumbered (user_id, version, type, changed, actor, request_id, time)
       SELECT gen_random_uuid(), 1, 1, 0, 'a', '', now() FROM generate_series(1, 1000)`,
    );
    const port = Number(new URL(service.url).port);
    const jobOf = async (sub: string, { path = '?limit=1', ...load }: Load): Promise<Job> => {
      const list = [wireOf({ method: 'GET', target: USERS + path, token: await issuer.sign({ sub }) })];
      return { port, requests: { list }, patienceMs: PATIENCE_MS, queues: true, seconds: 20, ...load };
    };
    const [peak] = await runLoads(await jobOf('a', { connections: 64, seconds: 3 }));
    // Together they send half of what can be served.
    const rate = Math.round(goodputOf(peak as Outcome) / 20);
    for (const trial of tries()) {
      const callers = await times(10, (index) => jobOf(`caller-${index}`, { connections: 64, rate }));
      const greedy = await jobOf('greedy', GREEDY[trial % GREEDY.length] as Load);
      const loads = Promise.all([runLoads(...callers), runLoads(greedy)]);
      await sleep(2000);
      service.signal('SIGSTOP');
      await sleep(3000);
      service.signal('SIGCONT');
      const [outcomes, [further]] = await loads;
      claim('the further caller gets what it reads', further?.other === 0 && further.answered > 0, further);
      const shares = outcomes.map(({ answered, due }) => answered / due);
      claim('each caller gets at least 40 % of its responses', Math.min(...shares) >= 0.4, shares);
    }
  },
};
