import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accept } from '../accept/accept.ts';
import { startBalancer } from '../lab/stage/balancer.ts';
import { startTwoInstances } from './two-instances.ts';

let instances: Awaited<ReturnType<typeof startTwoInstances>>;

beforeAll(async () => {
  instances = await startTwoInstances();
  expect(new Set(instances.ports).size).toBe(2);
});

afterAll(() => instances.stop());

test.each(['nginx', 'haproxy'] as const)('two instances behind %s hold as one does', async (program) => {
  const balancer = await startBalancer(program, instances.ports);
  const { code, report } = await accept([balancer.url, '--profile', 'full'], instances.credentials);
  await balancer.stop();

  expect(code, report).toBe(0);
});

test.each(['nginx', 'haproxy'] as const)(
  'behind %s, a 503 has Retry-After and is a problem, without PostgreSQL and without instances',
  async (program) => {
    const own = await startTwoInstances();
    const balancer = await startBalancer(program, own.ports);
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
    await balancer.stop();

    const refusal = [503, 'application/problem+json', '1', 'urn:svc:error:service_unavailable_error'];
    expect(refusals).toEqual(refusals.map(() => refusal));
  },
);
