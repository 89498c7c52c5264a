import { once } from 'node:events';
import type { Server } from 'node:http';
import { type AddressInfo, Server as NetServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { endpoints } from '../handlers/index.ts';
import type { Readiness } from '../lib/database/readiness.ts';
import { createEventLog } from '../lib/observability/event-log.ts';
import { createLineWriter, type LineWriter } from '../lib/observability/line-writer.ts';
import { loadTelemetry } from '../lib/observability/load-telemetry.ts';
import type { Readings } from '../lib/observability/metrics.ts';
import { redactedCause } from '../lib/observability/redaction.ts';
import { unavailable } from '../lib/problem.ts';
import { composeService, type Service } from '../lib/service.ts';
import type { Settings } from '../lib/settings.ts';
import packageJson from '../package.json' with { type: 'json' };
import { documentation } from './docs.ts';
import { createDrain, type Drain } from './drain.ts';
import { keepMigrated } from './keep-migrated.ts';
import { createResponseWriter, type ResponseWriter } from './response-writer.ts';
import { createRouter } from './router.ts';
import { createHttpServer } from './server.ts';

/** A running instance. */
export type Host = {
  readonly port: number;
  readonly url: string;
  /** Drains and releases everything, once; resolves when nothing is left. */
  shutDown(): Promise<void>;
};

/** How long each of the last steps may take, so that the process is gone in time; in seconds. */
const LAST_STEP = 0.5;

/**
 * Starts an instance: it listens at once, and connects to PostgreSQL and the identity provider when they come.
 * `logTo` is the descriptor of a file for the log, in place of standard output.
 *
 * @throws an error with code EADDRINUSE or EACCES when it cannot listen
 */
export async function startHost(settings: Settings, { logTo }: { logTo?: number } = {}): Promise<Host> {
  const onResumed = (count: number) => log.error('log_lines_dropped', { count });
  const lines = createLineWriter({ descriptor: logTo, onResumed });
  const telemetry = await loadTelemetry(settings, lines.write);
  const tracing = telemetry?.tracing;
  const log = createEventLog(settings, lines.write, tracing);
  for (const name of settings.unknown) log.warning('unknown_setting', { name });

  const service = composeService({ settings, log, tracing });
  const drain = createDrain();
  if (settings.otel.exportsMetrics) telemetry?.observe(readingsOf(service, drain, lines));
  let phase: 'serving' | 'unready' | 'draining' = 'serving';
  const readiness = unreadyAtShutdown(service.readiness, () => phase !== 'serving');
  const served =
    settings.environment === 'development'
      ? [...endpoints, ...documentation(endpoints, settings)]
      : endpoints;
  const router = createRouter(served, { ...service, readiness });
  const responses = createResponseWriter();
  const server = createHttpServer({
    service,
    router,
    drain,
    responses,
    isDraining: () => phase === 'draining',
  });
  await listen(server, settings);
  // A connection that cannot be accepted, for want of a descriptor say, must not end the process.
  server.on('error', (cause) => log.warning('accept_failed', { cause: redactedCause(cause) }));
  service.keySet.start();
  const migrations = settings.postgres.migrate ? keepMigrated(service) : undefined;
  const { port } = server.address() as AddressInfo;
  log.info('listening', { version: packageJson.version, host: settings.host, port });

  let shuttingDown: Promise<void> | undefined;

  async function shutDown(): Promise<void> {
    phase = 'unready';
    migrations?.stop();
    await sleep(settings.shutdown.readinessDelay * 1000);
    phase = 'draining';
    await drainRequests(service, drain);
    service.keySet.stop();
    await Promise.all([
      close(server, responses),
      service.database.close(LAST_STEP),
      service.readiness.close(),
    ]);
    await telemetry?.shutDown();
    await lines.end(0.3);
  }

  return {
    port,
    url: `http://127.0.0.1:${port}`,
    shutDown() {
      shuttingDown ??= shutDown();
      return shuttingDown;
    },
  };
}

function readingsOf({ database, tokenCache, keySet }: Service, drain: Drain, lines: LineWriter): Readings {
  return {
    requestsInFlight: () => drain.inFlight,
    connections: database.connections,
    tokenCache,
    jwksRefreshes: keySet.refreshes,
    linesDropped: lines.countDropped,
  };
}

/** The drain ends with no request in flight: answered, cancelled at the server's own limit, or out of time. */
async function drainRequests({ settings, log, database, keySet }: Service, drain: Drain): Promise<void> {
  const { drainTimeout, serverTimeout } = settings.shutdown;
  const cancel = () => {
    drain.cancelAll();
    database.cancel();
    keySet.stop();
  };
  const isServerFirst = serverTimeout !== undefined && serverTimeout < drainTimeout;
  const serverLimit = isServerFirst ? setTimeout(cancel, serverTimeout * 1000) : undefined;
  const isIdle = await drain.untilIdle(drainTimeout);
  clearTimeout(serverLimit);
  if (isIdle) return log.info('shutdown_drained');
  log.warning('shutdown_drain_timeout', { in_flight: drain.inFlight });
  cancel();
}

function unreadyAtShutdown(readiness: Readiness, isShuttingDown: () => boolean): Readiness {
  return {
    ...readiness,
    async check() {
      if (isShuttingDown()) throw unavailable('the shutdown has begun');
      await readiness.check();
    },
  };
}

async function listen(server: Server, { host, port }: Settings): Promise<void> {
  server.listen({ host, port });
  await once(server, 'listening');
}

/** Answers on their way out are given a moment; connections without one are closed at once. */
async function close(server: Server, responses: ResponseWriter): Promise<void> {
  const closed = once(server, 'close');
  // http's own close would also cut off the answers that are not sent yet.
  NetServer.prototype.close.call(server);
  const cut = setTimeout(() => server.closeAllConnections(), LAST_STEP * 1000);
  await responses.untilSent();
  server.closeIdleConnections();
  await closed;
  clearTimeout(cut);
}
