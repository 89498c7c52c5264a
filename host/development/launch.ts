import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { runMigrations } from '../../lib/migrations/index.ts';
import { type Settings, SettingsError } from '../../lib/settings/settings.ts';
import { type Host, startHost } from '../host.ts';
import { listenFault } from '../listen.ts';
import { banner, type Development, settingsBeside } from './banner.ts';
import { readDevelopmentSettings } from './development-settings.ts';
import { freePort, isTaken } from './free-port.ts';
import { isServed } from './postgres/server.ts';
import { startPostgres } from './postgres.ts';
import { startTokenIssuer } from './token-issuer.ts';

const dataFolder = join(import.meta.dirname, '../../.data');
const postgresFolder = join(dataFolder, 'postgres');
const connectionFile = join(dataFolder, 'development.json');
const readyLimit = 30_000;
/** In milliseconds. A longer start says what it waits for. */
const patience = 300;

// A signal during the start waits for the current step, so that no half-started part is left behind.
const leaving = new AbortController();
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => leaving.abort());
// npm passes on SIGINT and SIGTERM. If it is killed, it passes on nothing.
const parent = process.ppid;
if (process.env.npm_lifecycle_event) {
  setInterval(() => process.ppid !== parent && leaving.abort(), 200).unref();
}

const parts = new AsyncDisposableStack();
try {
  process.stdout.write(banner(await startEverything()));
  if (!leaving.signal.aborted) await once(leaving.signal, 'abort');
} catch (error) {
  if (!leaving.signal.aborted) fail(messageOf(error));
}
if (leaving.signal.aborted) process.stdout.write('\nStopping\n');
await parts.disposeAsync();
process.exit();

function fail(message: string): void {
  process.stderr.write(`\n${message}\n`);
  process.exitCode = 1;
}

async function startEverything(): Promise<Development> {
  const { settings, postgresPort, issuerPort } = await readDevelopmentSettings(process.env);
  if (postgresPort) await refuseSecondStart();
  await refuseTakenPort(settings);
  process.stdout.write('Starting the service for development\n');

  // In this order, because a port that was free a moment ago may be taken while a server starts.
  const { audience, issuer: name } = settings.oauth;
  const keyFile = join(dataFolder, 'token-issuer-key.json');
  const issuer = issuerPort
    ? await start('token issuer (for development only)', () =>
        startTokenIssuer({ audience, issuer: name, port: issuerPort, keyFile }),
      )
    : undefined;
  const database = postgresPort
    ? await start('PostgreSQL', () => startPostgres({ dataFolder: postgresFolder, port: postgresPort }))
    : undefined;
  const service = await start('service', async () => {
    // Migrations run here, so that they have no time limit, and their failure ends the start.
    if (database && settings.postgres.migrate) await runMigrations(settings.postgres);
    const host = await startHost(settings);
    return { ...host, stop: () => host.shutDown() };
  });
  await untilReady(service, settings);
  const token = await issuer?.issueToken({ clientId: 'newcomer', expiresIn: 24 * 3600 });
  const development = { settings, service, database, issuer, token };
  if (token) writeConnection({ url: service.url, token, beside: settingsBeside(development) });
  return development;
}

/** What other programs of this folder need to know of the running service. */
type Connection = {
  readonly url: string;
  readonly token: string;
  readonly beside: Readonly<Record<string, string | number>>;
};

/** Writes the file from which `npm run users` takes the address of the service and a token. */
function writeConnection(connection: Connection): void {
  // A file that a killed process has left may have another mode.
  rmSync(connectionFile, { force: true });
  writeFileSync(connectionFile, `${JSON.stringify(connection)}\n`, { mode: 0o600 });
  process.once('exit', () => rmSync(connectionFile, { force: true }));
}

/** Starts one part, prints its duration, and remembers to stop it before the parts that were started earlier. */
async function start<Part extends { stop(): Promise<void> }>(name: string, starting: () => Promise<Part>) {
  leaving.signal.throwIfAborted();
  const since = performance.now();
  const notice = setTimeout(() => process.stdout.write(`  starting ${name}\n`), 1000);
  const part = await starting().finally(() => clearTimeout(notice));
  parts.defer(() =>
    part.stop().then(
      () => void process.stdout.write(`  ${name} stopped\n`),
      (error) => fail(`${name} did not stop: ${messageOf(error)}`),
    ),
  );
  process.stdout.write(`  ${name} started in ${((performance.now() - since) / 1000).toFixed(1)} s\n`);
  return part;
}

/** The embedded PostgreSQL of a folder runs once. A second service uses that of the first. */
async function refuseSecondStart(): Promise<void> {
  if (!(await isServed(join(postgresFolder, 'cluster')))) return;
  const connection = readConnection();
  if (!connection) throw new Error('Another "npm run dev" of this folder is starting or stopping.');
  const { url, beside } = connection;
  const variables = Object.entries(beside).map(([name, value]) => `${name}=${value}`);
  throw new Error(
    `Another "npm run dev" of this folder is running, at ${url}. Start a second service beside it:\n\n  ${variables.join(' ')} npm start`,
  );
}

function readConnection(): Connection | undefined {
  try {
    return JSON.parse(readFileSync(connectionFile, 'utf8'));
  } catch {
    return undefined;
  }
}

async function refuseTakenPort({ port, host }: Settings): Promise<void> {
  if (!(await isTaken(port, host))) return;
  const free = await freePort([port + 1, port + 2, port + 3]);
  throw new Error(
    `Port ${port} is taken by another program. Choose another one:\n\n  SVC_PORT=${free} npm run dev`,
  );
}

/** The readiness is checked directly. Over HTTP every refusal would be a line in the log, with a stack. */
async function untilReady({ checkReadiness }: Host, { postgres }: Settings): Promise<void> {
  const since = performance.now();
  let reported: string | undefined;
  for (; ; await pause(50, undefined, { signal: leaving.signal })) {
    const cause = await checkReadiness().then(
      () => undefined,
      ({ message }: Error) => message,
    );
    if (cause === undefined) return;
    const waited = performance.now() - since;
    if (waited > readyLimit)
      throw new Error(`The service was not ready within ${readyLimit / 1000} s: ${cause}`);
    if (waited > patience && cause !== reported) {
      reported = cause;
      const servers = postgres.servers.map(({ host, port }) => `${host}:${port}`).join(', ');
      process.stdout.write(`  waiting for PostgreSQL at ${servers}: ${cause}\n`);
    }
  }
}

// Expected errors explain themselves in their message. The stack matters only for a defect.
function messageOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const isExpected = error instanceof SettingsError || error.name === 'Error';
  return listenFault(error) ?? (isExpected ? error.message : (error.stack ?? error.message));
}
