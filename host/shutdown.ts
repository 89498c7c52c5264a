import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import { unavailable } from '../lib/http/problem.ts';
import type { LineWriter } from '../lib/observability/line-writer.ts';
import type { Telemetry } from '../lib/observability/telemetry.ts';
import type { Readiness } from '../lib/postgres/index.ts';
import type { Service } from '../lib/service.ts';
import type { Admissions } from './admission/admission.ts';
import type { RequestsInFlight } from './requests-in-flight.ts';
import type { ResponseWriter } from './response-writer.ts';

/** The parts of an instance, which are released at its end. */
type Parts = {
  readonly service: Service;
  readonly migrations: { stop(): void } | undefined;
  readonly maintenance: { stop(): void };
  readonly admissions: Admissions;
  readonly drain: RequestsInFlight;
  readonly server: Server;
  readonly responses: ResponseWriter;
  readonly telemetry: Telemetry | undefined;
  readonly lines: LineWriter;
};

/** The end of an instance, and whether it has begun. */
export type Shutdown = {
  /** Whether the drain has begun. */
  readonly isDraining: boolean;
  /** Seconds since the drain began; 0 before. */
  readonly drainAge: number;
  /** The readiness of the instance. Its check fails from the beginning of the shutdown. */
  readinessUntilBegun(readiness: Readiness): Readiness;
  /** Drains and releases everything, once. Resolves when nothing is left. */
  run(parts: Parts): Promise<void>;
};

/** In seconds: time limit of each of the last steps, so that the process ends in time. */
const LAST_STEP = 0.5;

/** In seconds: time limit for the last lines of the log. */
export const LAST_LINES = 0.3;

/** Creates the shutdown of one instance: not ready, drain, and only then the connections to the database. */
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

/** The drain ends when no request is in flight: answered, cancelled at the server's own limit, or timed out. */
async function drainRequests(
  { settings, log, database, keySet }: Service,
  admissions: Admissions,
  drain: RequestsInFlight,
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
  // The requests that were in the kernel are in flight now.
  await setImmediate();
  drain.endWaits();
  const isIdle = await drain.untilIdle(drainTimeout);
  clearTimeout(serverLimit);
  if (isIdle) return log.info('shutdown_drained');
  log.warning('shutdown_drain_timeout', { in_flight: drain.inFlight });
  cancel();
}

/** Responses that are being sent have a moment. Connections without one are closed at once. */
async function close(server: Server, responses: ResponseWriter): Promise<void> {
  const closed = once(server, 'close');
  // http's own close would also cut off responses that are not sent yet.
  NetServer.prototype.close.call(server);
  const cut = setTimeout(() => server.closeAllConnections(), LAST_STEP * 1000);
  await responses.untilSent();
  server.closeIdleConnections();
  await closed;
  clearTimeout(cut);
}
