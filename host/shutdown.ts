import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { Readiness } from '../lib/database/readiness.ts';
import type { LineWriter } from '../lib/observability/line-writer.ts';
import type { Telemetry } from '../lib/observability/telemetry.ts';
import { unavailable } from '../lib/problem.ts';
import type { Service } from '../lib/service.ts';
import type { Admissions } from './door.ts';
import type { Drain } from './drain.ts';
import type { ResponseWriter } from './response-writer.ts';

/** What an instance consists of, and gives up when it ends. */
type Parts = {
  readonly service: Service;
  readonly migrations: { stop(): void } | undefined;
  readonly maintenance: { stop(): void };
  readonly admissions: Admissions;
  readonly drain: Drain;
  readonly server: Server;
  readonly responses: ResponseWriter;
  readonly telemetry: Telemetry | undefined;
  readonly lines: LineWriter;
};

/** The end of an instance, and whether it has begun. */
export type Shutdown = {
  /** Whether the drain has begun. */
  readonly isDraining: boolean;
  /** For how many seconds it has been under way; 0 while it has not begun. */
  readonly drainAge: number;
  /** The readiness of the instance: from the beginning of the shutdown on its check fails. */
  readinessUntilBegun(readiness: Readiness): Readiness;
  /** Drains and releases everything, once; resolves when nothing is left. */
  run(parts: Parts): Promise<void>;
};

/** How long each of the last steps may take, so that the process is gone in time; in seconds. */
const LAST_STEP = 0.5;

/** How long the last lines of the log may take; in seconds. */
export const LAST_LINES = 0.3;

/** The shutdown of one instance: unready, drain, and only then the connections to the database. */
export function createShutdown(): Shutdown {
  let phase: 'serving' | 'unready' | 'draining' = 'serving';
  let drainSince: number | undefined;
  let running: Promise<void> | undefined;

  async function begin(parts: Parts) {
    const { service, migrations, maintenance, admissions, drain, server, responses, telemetry, lines } =
      parts;
    phase = 'unready';
    migrations?.stop();
    maintenance.stop();
    await sleep(service.settings.shutdown.readinessDelay * 1000);
    phase = 'draining';
    drainSince = performance.now();
    await drainRequests(service, admissions, drain);
    service.keySet.stop();
    await Promise.all([
      close(server, responses),
      service.database.close(LAST_STEP),
      service.readiness.close(),
    ]);
    await telemetry?.shutDown();
    await lines.end(LAST_LINES);
  }

  return {
    get isDraining() {
      return phase === 'draining';
    },
    get drainAge() {
      return drainSince === undefined ? 0 : (performance.now() - drainSince) / 1000;
    },
    readinessUntilBegun: (readiness) => ({
      ...readiness,
      async check() {
        if (phase !== 'serving') throw unavailable('the shutdown has begun');
        await readiness.check();
      },
    }),
    run(parts) {
      running ??= begin(parts);
      return running;
    },
  };
}

/** The drain ends with no request in flight: answered, cancelled at the server's own limit, or out of time. */
async function drainRequests(
  { settings, log, database, keySet }: Service,
  admissions: Admissions,
  drain: Drain,
): Promise<void> {
  const { drainTimeout, serverTimeout } = settings.shutdown;
  const cancel = () => {
    drain.cancelAll();
    database.cancel();
    keySet.stop();
  };
  const isServerFirst = serverTimeout !== undefined && serverTimeout < drainTimeout;
  const serverLimit = isServerFirst ? setTimeout(cancel, serverTimeout * 1000) : undefined;
  admissions.readAll();
  // By then what was in the kernel is in flight.
  await setImmediate();
  drain.endWaits();
  const isIdle = await drain.untilIdle(drainTimeout);
  clearTimeout(serverLimit);
  if (isIdle) return log.info('shutdown_drained');
  log.warning('shutdown_drain_timeout', { in_flight: drain.inFlight });
  cancel();
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
