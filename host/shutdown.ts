import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { LineWriter } from '../lib/observability/line-writer.ts';
import type { Telemetry } from '../lib/observability/telemetry.ts';
import type { ExchangeParts } from './exchange.ts';
import { BACKLOG } from './listen.ts';

type ReleasedParts = ExchangeParts & {
  readonly loops: AbortController;
  readonly server: Server;
  readonly telemetry: Telemetry | undefined;
  readonly lines: LineWriter;
};

/** In seconds: time limit of each of the last steps, so that the process ends in time. */
const LAST_STEP_S = 0.5;

/**
 * In seconds: maximum time for which requests on open connections are served after the listener has closed. Balancers keep
 * connections open, and send requests on them until a response has `Connection: close`.
 */
const LINGER_S = 1;

/** In seconds: by how much the linger may exceed the time limit of the drain, so that the process ends in time. */
const LINGER_GRACE_S = 0.2;

/** A pass of the event loop that took longer may have left connections that have arrived during it. */
const SHORT_PASS_MS = 1;

export const LAST_LINES_S = 0.3;

/** Ends an instance: not ready, drain, and only then the sessions of PostgreSQL. Resolves when nothing is left. */
export async function shutDown(parts: ReleasedParts): Promise<void> {
  const { service, loops, telemetry, lines } = parts;
  service.readiness.beginShutdown();
  loops.abort();
  await sleep(service.settings.shutdown.readinessDelay * 1000);
  const isDrained = await drainRequests(parts);
  const { drainTimeout, serverTimeout = Number.POSITIVE_INFINITY } = service.settings.shutdown;
  const end = Math.min(drainTimeout + LINGER_GRACE_S, Math.max(serverTimeout, 0));
  const left = () => (isDrained ? end - parts.inFlight.drainAge : 0);
  await acceptWaiting(parts.server, left() / 2);
  await close(parts, Math.min(LINGER_S, left()));
  await telemetry?.shutDown();
  await lines.end(LAST_LINES_S);
}

/**
 * The drain ends when no request is in flight: answered, cancelled at the server's own limit, or timed out. Resolves with
 * whether requests may still be served.
 */
async function drainRequests({ service, admissions, inFlight }: ReleasedParts): Promise<boolean> {
  const { settings, log, database, keySet } = service;
  const { drainTimeout, serverTimeout } = settings.shutdown;
  let isCancelled = false;
  const cancel = () => {
    isCancelled = true;
    inFlight.cancelAll();
    database.cancel();
    keySet.stop();
  };
  const isServerFirst = serverTimeout !== undefined && serverTimeout < drainTimeout;
  const serverLimit = isServerFirst ? setTimeout(cancel, serverTimeout * 1000) : undefined;
  inFlight.beginDrain();
  admissions.resumeAll();
  // The requests that were in the kernel are in flight now.
  await setImmediate();
  inFlight.endWaits();
  const isIdle = await inFlight.untilIdle(drainTimeout);
  clearTimeout(serverLimit);
  if (isIdle) log.info('shutdown_drained');
  else {
    log.warning('shutdown_drain_timeout', { in_flight: inFlight.count });
    cancel();
  }
  return !isCancelled;
}

/**
 * Accepts the connections that the kernel has accepted: when the listener closes, it resets those that are left. Node accepts
 * one in each pass of the event loop. Returns after a pass that has accepted none and in which hardly one can have arrived,
 * after all that can have waited at the beginning, or after `seconds`, so that time for the linger is left.
 */
async function acceptWaiting(server: Server, seconds: number): Promise<void> {
  const end = performance.now() + seconds * 1000;
  let isQuiet = false;
  const onConnection = () => {
    isQuiet = false;
  };
  server.on('connection', onConnection);
  // The rest of this pass may accept nothing, although connections wait.
  await setImmediate();
  for (let passes = 0; !isQuiet && passes <= BACKLOG && performance.now() < end; passes += 1) {
    const begun = performance.now();
    isQuiet = true;
    await setImmediate();
    isQuiet &&= performance.now() - begun < SHORT_PASS_MS;
  }
  server.off('connection', onConnection);
}

/**
 * Closes the listener, serves open connections for `linger` seconds, and closes everything. Requests and responses in
 * progress then have half a second (`LAST_STEP_S`). Connections without one are closed at once.
 */
async function close({ server, connections, responses, inFlight, service }: ReleasedParts, linger: number) {
  const closed = once(server, 'close');
  // http's own close would also cut off responses that are not sent yet.
  NetServer.prototype.close.call(server);
  if (linger > 0) await Promise.race([closed, sleep(linger * 1000)]);
  const cut = setTimeout(() => connections.destroyAll(), LAST_STEP_S * 1000);
  // The requests that were in the kernel are in flight now.
  await setImmediate();
  connections.destroyIdle();
  if (linger > 0) await inFlight.untilIdle(LAST_STEP_S / 2);
  service.keySet.stop();
  const database = service.database.close(LAST_STEP_S / (linger > 0 ? 2 : 1));
  await responses.untilSent();
  connections.destroyIdle();
  await Promise.all([closed, database]);
  clearTimeout(cut);
}
