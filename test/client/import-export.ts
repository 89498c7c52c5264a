import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { startBuiltHost } from '../stage/built-host.ts';
import { untilReady } from '../stage/built-service.ts';
import { startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { listen } from '../stage/listening.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';

/**
 * Imports, exports, compares and relays users by the command of `infra/client`, with the service and PostgreSQL on this machine, and
 * prints time, rate and memory of each as a line of JSON. `--users <n>` is their number. The settings of PostgreSQL are
 * its own: a commit waits for the disk.
 */
const MAIN = join(import.meta.dirname, '../../infra/client/dist/command/main.js');

const { values } = parseArgs({ options: { users: { type: 'string', default: '200000' } } });
const number = Number(values.users);
if (!Number.isInteger(number) || number < 1) throw new Error('--users must be a number');

const folder = mkdtempSync(join(tmpdir(), 'user-management-import-'));
const file = join(folder, 'users.ndjson');
const exported = join(folder, 'exported.ndjson');
writeUsers();

const [postgres, issuer] = await Promise.all([
  startDisposablePostgres({ settings: { fsync: 'on', full_page_writes: 'on' } }),
  startIssuer(),
]);
const host = await startBuiltHost(environmentOf(postgres, issuer));
try {
  const url = await host.untilListening();
  await untilReady(url);
  const token = await issuer.sign({ exp: Math.floor(Date.now() / 1000) + 24 * 3600 });
  const environment = { USERS_URL: url, USERS_TOKEN: token };
  print({ cores: cpus().length, node: process.version, users: number });
  await measure('import', ['import', file], environment);
  await measure('import again', ['import', file], environment);
  await measure('export', ['export', '--out', exported, '--cursor', join(folder, 'cursor')], environment);
  await measure('diff', ['diff', exported], environment);
  await measureRelay(environment);
} finally {
  await host.remove();
  await Promise.all([postgres.stop(), issuer.stop()]);
  rmSync(folder, { recursive: true });
}
process.exit();

function writeUsers(): void {
  const descriptor = openSync(file, 'w');
  let text = '';
  for (let count = 1; count <= number; count += 1) {
    text += `${JSON.stringify({ email: `user.${count}@example.com`, full_name: `User Number ${count}` })}\n`;
    if (count % 10_000 !== 0 && count !== number) continue;
    writeSync(descriptor, text);
    text = '';
  }
  closeSync(descriptor);
}

/** Relays the oldest changes to a receiver in this process. */
async function measureRelay(environment: NodeJS.ProcessEnv): Promise<void> {
  const changes = Math.min(number, 30_000);
  let count = 0;
  let end = () => {};
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end());
    count += 1;
    if (count === changes) end();
  });
  const { url } = await listen(receiver);
  const own = { USERS_RELAY_URL: url, USERS_RELAY_SECRET: `whsec_${randomBytes(32).toString('base64')}` };
  for (const parallel of ['1', '8']) {
    count = 0;
    const done = new Promise<void>((resolve) => {
      end = resolve;
    });
    const words = [
      'relay',
      '--cursor',
      join(folder, `relay-${parallel}`),
      '--from',
      'oldest',
      '--parallel',
      parallel,
    ];
    await measure(
      `relay, --parallel ${parallel}`,
      words,
      { ...environment, ...own },
      { count: changes, done },
    );
  }
  receiver.close();
}

async function measure(
  what: string,
  words: readonly string[],
  env: NodeJS.ProcessEnv,
  { count = number, done }: { readonly count?: number; readonly done?: Promise<void> } = {},
): Promise<void> {
  const begin = performance.now();
  const child = spawn(process.execPath, [MAIN, ...words], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  void done?.then(() => child.kill());
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (part: string) => {
    said += part;
  });
  // The last reading before the end counts.
  let used = { megabytes: 0, cpuSeconds: 0 };
  const watch = setInterval(() => {
    used = usedBy(child.pid) ?? used;
  }, 100);
  const [code] = await once(child, 'close');
  clearInterval(watch);
  const seconds = (performance.now() - begin) / 1000;
  print({
    what,
    code,
    seconds: Number(seconds.toFixed(1)),
    per_second: Math.round(count / seconds),
    peak_megabytes: used.megabytes,
    cpu_seconds: used.cpuSeconds,
    last_line: said.trimEnd().split('\n').at(-1),
  });
}

/** The highest resident memory and the processor time of a process so far; undefined once it has ended. */
function usedBy(processId: number | undefined) {
  try {
    const status = readFileSync(`/proc/${processId}/status`, 'utf8');
    const [, highWater] = /VmHWM:\s+(\d+) kB/.exec(status) ?? [];
    if (highWater === undefined) return undefined;
    const fields = readFileSync(`/proc/${processId}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
    const ticks = Number(fields[11]) + Number(fields[12]);
    return { megabytes: Math.round((Number(highWater) * 1024) / 1e6), cpuSeconds: ticks / 100 };
  } catch {
    return undefined;
  }
}

function print(line: Readonly<Record<string, unknown>>): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}
