import { afterAll, beforeAll, expect, test } from 'vitest';
import { accept } from '../accept/accept.ts';
import { startBalancer, startTwoInstances } from './two-instances.ts';

let instances: Awaited<ReturnType<typeof startTwoInstances>>;

beforeAll(async () => {
  instances = await startTwoInstances();
});

afterAll(() => instances.stop());

test.each([
  ['nginx.conf', 'nginx'],
  ['haproxy.cfg', 'haproxy'],
] as const)('two instances behind %s hold as one does', async (name, program) => {
  const balancer = await startBalancer(program, name, instances.ports);
  const { code, report } = await accept([balancer.url, '--profile', 'full'], instances.credentials);
  await balancer.stop();

  expect(code, report).toBe(0);
});
