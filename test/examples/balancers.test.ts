import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { accept } from '../accept/accept.ts';
import { startBalancer } from '../lab/stage/balancer.ts';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import { startTwoInstances } from './two-instances.ts';

const instances = forAllTests(startTwoInstances);

test.each(['nginx', 'haproxy'] as const)('two instances behind %s hold as one does', async (program) => {
  const balancer = await forThisTest(startBalancer, program, instances.ports);
  const { code, report } = await accept([balancer.url, '--profile', 'full'], instances.credentials);

  expect(code, report).toBe(0);
});

test.each(['nginx', 'haproxy'] as const)(
  'behind %s, a 503 has Retry-After and is a problem, without PostgreSQL and without instances',
  async (program) => {
    const own = await startTwoInstances();
    const balancer = await forThisTest(startBalancer, program, own.ports);
    await own.database.drop();
    const refusals: unknown[] = [];
    const look = async () => {
      const response = await fetch(`${balancer.url}/ready`);
      refusals.push([
        response.status,
        response.headers.get('content-type'),
        response.headers.get('retry-after'),
        ((await response.json()) as { type: string }).type,
      ]);
    };
    // Longer than the balancer needs to see that no instance is ready.
    for (const until = Date.now() + 3000; Date.now() < until; await sleep(200)) await look();
    await own.stop();
    await look();

    const refusal = [503, 'application/problem+json', '1', 'urn:svc:error:service_unavailable_error'];
    expect(refusals).toEqual(refusals.map(() => refusal));
  },
);
