import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { cpus } from 'node:os';
import { parseArgs } from 'node:util';
import { startBuiltHost } from '../stage/built-host.ts';
import { untilReady } from '../stage/caller.ts';
import { startDisposablePostgres } from '../stage/disposable-postgres.ts';
import { listen } from '../stage/listening.ts';
import { environmentOf } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { lastLine, openFiles, startCommand, usersNamed } from './command.ts';
import { newSecret } from './receiver.ts';

/**
 * Imports, exports, compares and relays users by the command of `infra/client`, with the service and PostgreSQL on this machine, and
 * prints time, rate and memory of each as a line of JSON. `--users <n>` is their number. The settings of PostgreSQL are
 * its own: a commit waits for the disk.
 */
const { values } = parseArgs({ options: { users: { type: 'string', default: '200000' } } });
const number = Number(values.users);
if (!Number.isInteger(number) || number < 1) throw new Error('--users must be a number');

const files = openFiles();
const file = files.write('users.ndjson', usersNamed('user', number));
const exported = files.pathOf('exported.ndjson');

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
  await measure('export', ['export', '--out', exported, '--cursor', files.pathOf('cursor')], environment);
  await measure('diff', ['diff', exported], environment);
  await measureRelay(environment);
} finally {
  await host.remove();
  await Promise.all([postgres.stop(), issuer.stop()]);
  files.remove();
}
process.exit();

/** Relays the oldest changes to a receiver in this process. */
async function measureRelay(environment: NodeJS.ProcessEnv): Promise<void> {
  const changes = Math.min(number, 30_000);
  let count = 0;
  let delivered = Promise.withResolvers<void>();
  const receiver = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end());
    count += 1;
    if (count === changes) delivered.resolve();
  });
  const { url } = await listen(receiver);
  const variables = { ...environment, USERS_RELAY_URL: url, USERS_RELAY_SECRET: newSecret() };
  for (const parallel of ['1', '8']) {
    count = 0;
    delivered = Promise.withResolvers();
    const cursor = files.pathOf(`relay-${parallel}`);
    await measure(
      `relay, --parallel ${parallel}`,
      ['relay', '--cursor', cursor, '--from', 'oldest', '--parallel', parallel],
      variables,
      { count: changes, done: delivered.promise },
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
  const command = startCommand(words, env);
  void done?.then(() => command.signal('SIGTERM'));
  // The last reading before the end counts.
  let used = { megabytes: 0, cpuSeconds: 0 };
  const watch = setInterval(() => {
    used = usedBy(command.processId) ?? used;
  }, 100);
  const { code, stderr } = await command.ended;
  clearInterval(watch);
  const seconds = (performance.now() - begin) / 1000;
  print({
    what,
    code,
    seconds: Number(seconds.toFixed(1)),
    per_second: Math.round(count / seconds),
    peak_megabytes: used.megabytes,
    cpu_seconds: used.cpuSeconds,
    last_line: lastLine(stderr),
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
