import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import { accept } from '../accept/accept.ts';
import { until } from '../stage/until.ts';
import { startTwoInstances } from './two-instances.ts';

const EXAMPLES = join(import.meta.dirname, '../../infra/examples');

let instances: Awaited<ReturnType<typeof startTwoInstances>>;

beforeAll(async () => {
  instances = await startTwoInstances();
});

afterAll(() => instances.stop());

/** Starts a program with the example as it stands, but for ports and the folder of its files. */
async function startExample(name: string, command: (file: string) => readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), 'user-management-example-'));
  const [one, two] = instances.ports;
  const port = await freePort();
  const text = readFileSync(join(EXAMPLES, name), 'utf8')
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${port}`)
    .replaceAll('127.0.0.1:8000', `127.0.0.1:${one}`)
    .replaceAll('127.0.0.1:8001', `127.0.0.1:${two}`)
    .replaceAll('/tmp/', `${folder}/`);
  const file = join(folder, name);
  writeFileSync(file, text);
  const [program = '', ...words] = command(file);
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'] });
  const kill = () => void child.kill('SIGKILL');
  process.on('exit', kill);
  let told = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    told += part;
  });
  const url = `http://127.0.0.1:${port}`;
  await until(`${program} leads to the service: ${told}`, async () => {
    if (child.exitCode !== null) throw new Error(told);
    return fetch(`${url}/ready`).then(
      ({ ok }) => ok,
      () => false,
    );
  });
  return {
    url,
    async stop() {
      child.kill('SIGTERM');
      await once(child, 'exit');
      process.off('exit', kill);
      rmSync(folder, { recursive: true });
    },
  };
}

test.each([
  ['nginx.conf', (file: string) => ['nginx', '-c', file, '-g', 'daemon off;']],
  ['haproxy.cfg', (file: string) => ['haproxy', '-db', '-f', file]],
])('two instances behind %s hold as one does', async (name, command) => {
  const example = await startExample(name, command);
  const { code, report } = await accept([example.url, '--profile', 'full'], instances.credentials);
  await example.stop();

  expect(code, report).toBe(0);
});
