import { execFileSync } from 'node:child_process';
import { closeSync, openSync, writeSync } from 'node:fs';
import { createServer } from 'node:http';
import { cpus } from 'node:os';
import { lastLine, openFiles, startCommand, usersNamed } from '../../client/command.ts';
import { newSecret } from '../../client/receiver.ts';
import { listen } from '../../stage/listening.ts';
import { defineExperiment, numberIn } from '../experiment.ts';
import { cpuOf } from '../meters/cpu.ts';
import { mostMemory } from '../meters/memory.ts';

/** Number of changes that are relayed, if there are so many. */
const RELAYED = 30_000;

/**
 * Imports, exports, compares, synchronizes and relays users by the command of `infra/client`, and prints time, rate and memory of each
 * as a line of JSON. The settings of PostgreSQL are its own: a commit waits for the disk.
 */
export const experiment = defineExperiment({
  promise:
    'Measures how fast the command users imports, exports, compares, synchronizes and relays, and its memory.',
  takes: 'a few minutes',
  needs: 'the npm registry, and a quiet machine',
  options: { users: { type: 'string', default: '200000' } },
  async run({ options, print, printRow, defer, openStage }) {
    execFileSync(process.execPath, ['infra/client/prepare.mjs'], { stdio: 'inherit' });
    const users = numberIn('users', options.users);
    const postgres = { settings: { fsync: 'on', full_page_writes: 'on' } };
    const { startService, issuer } = await openStage({ seed: 1, trials: 1, postgres });
    const { url } = await startService();
    const exp = Math.floor(Date.now() / 1000) + 24 * 3600;
    const variables = { USERS_URL: url, USERS_TOKEN: await issuer.sign({ exp }) };
    const files = openFiles();
    defer(files.remove);
    const file = files.write('users.ndjson', usersNamed('user', users));
    const [exported, cursor] = [files.pathOf('exported.ndjson'), files.pathOf('cursor')];
    let isRight = true;
    const figures: string[] = [];
    const measure = async (
      what: string,
      words: readonly string[],
      more: NodeJS.ProcessEnv = {},
      receiver?: Awaited<ReturnType<typeof startReceiver>>,
      count = users,
    ) => {
      const until = receiver ?? { count, isReached: new Promise<void>(() => {}) };
      const report = await measureCommand(words, { ...variables, ...more }, until);
      // The signal that stops a relay makes its exit code 1.
      isRight &&= report.code === (receiver ? 1 : 0);
      print(JSON.stringify({ what, ...report }));
      figures.push(`${what} ${report.seconds} s, ${report.peak_mebibytes} MiB`);
    };

    print(JSON.stringify({ cores: cpus().length, node: process.version, users }));
    await measure('import', ['import', file]);
    await measure('import again', ['import', file]);
    await measure('export', ['export', '--out', exported, '--cursor', cursor]);
    await measure('diff', ['diff', exported]);
    const csv = (name: string, write: (n: number) => string) => {
      const file = openSync(files.pathOf(name), 'w');
      writeSync(file, 'external_id,email,full_name\n');
      for (let n = 1; n <= users; n += 1000)
        writeSync(
          file,
          Array.from({ length: Math.min(1000, users - n + 1) }, (_, m) => write(n + m)).join(''),
        );
      closeSync(file);
      return files.pathOf(name);
    };
    const lineOf = (n: number, name = `User ${n}`) => `hr-${n},csv.${n}@example.com,"${name}"\n`;
    await measure('import of CSV', ['import', csv('users.csv', (n) => lineOf(n))]);
    await measure('sync, equal', ['sync', files.pathOf('users.csv'), '--deactivate-missing']);
    const changed = csv('changed.csv', (n) => lineOf(n, n % 10 === 0 ? `Changed ${n}` : undefined));
    await measure('sync, a tenth changed', ['sync', changed], {}, undefined, Math.floor(users / 10));
    for (const parallel of ['1', '8']) {
      const receiver = await startReceiver(Math.min(users, RELAYED));
      const words = ['relay', '--from', 'oldest', '--cursor', files.pathOf(`relay-${parallel}`)];
      const relayed = { USERS_RELAY_URL: receiver.url, USERS_RELAY_SECRET: newSecret() };
      await measure(`relay, --parallel ${parallel}`, [...words, '--parallel', parallel], relayed, receiver);
      receiver.stop();
    }
    printRow(figures.join('; '), 'of 1,000,000: import 60 s, export 20 s, diff 30 s');
    return isRight;
  },
});

/** Runs the command to its end, or until the number of users or changes is reached. */
async function measureCommand(
  words: readonly string[],
  variables: NodeJS.ProcessEnv,
  { count, isReached }: { readonly count: number; readonly isReached: Promise<void> },
) {
  const begin = performance.now();
  const command = startCommand(words, variables);
  void isReached.then(() => command.signal('SIGTERM'));
  // The last reading before the end counts.
  let used = { peak_mebibytes: 0, cpu_seconds: 0 };
  const watch = setInterval(() => {
    const processId = Number(command.processId);
    const peak_mebibytes = command.isRunning() ? Math.round(mostMemory(processId)) : 0;
    if (peak_mebibytes > 0) used = { peak_mebibytes, cpu_seconds: cpuOf(processId) };
  }, 100);
  const { code, stderr } = await command.ended;
  clearInterval(watch);
  const seconds = (performance.now() - begin) / 1000;
  const per_second = Math.round(count / seconds);
  return { code, seconds: Number(seconds.toFixed(1)), per_second, ...used, last_line: lastLine(stderr) };
}

/** A receiver that responds at once. `isReached` resolves after `count` changes. */
async function startReceiver(count: number) {
  let received = 0;
  const { promise: isReached, resolve } = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    request.resume().on('end', () => response.writeHead(204).end());
    received += 1;
    if (received === count) resolve();
  });
  const { url } = await listen(server);
  return { url, count, isReached, stop: () => server.close() };
}
