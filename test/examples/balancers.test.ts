import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { accept } from '../accept/accept.ts';
import { startFront } from '../lab/stage/front.ts';
import { until } from '../stage/until.ts';
import { startTwoInstances } from './two-instances.ts';

const EXAMPLES = join(import.meta.dirname, '../../infra/examples');

let instances: Awaited<ReturnType<typeof startTwoInstances>>;

beforeAll(async () => {
  instances = await startTwoInstances();
});

afterAll(() => instances.stop());

/** Starts the program of an example with its unchanged configuration, except for ports and the folder of its files. */
async function startExample(program: 'nginx' | 'haproxy', name: string) {
  const [one, two] = instances.ports;
  const example = await startFront(program, (port, folder) =>
    readFileSync(join(EXAMPLES, name), 'utf8')
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)
      .replaceAll('127.0.0.1:8000', `127.0.0.1:${one}`)
      .replaceAll('127.0.0.1:8001', `127.0.0.1:${two}`)
      .replaceAll('/tmp/', `${folder}/`),
  );
  const isReady = () =>
    fetch(`${example.url}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  await until(`${program} leads to the service`, isReady);
  return example;
}

test.each([
  ['nginx.conf', 'nginx'],
  ['haproxy.cfg', 'haproxy'],
] as const)('two instances behind %s hold as one does', async (name, program) => {
  const example = await startExample(program, name);
  const { code, report } = await accept([example.url, '--profile', 'full'], instances.credentials);
  await example.stop();

  expect(code, report).toBe(0);
});
