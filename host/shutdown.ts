import { once } from 'node:events';
import type { Server } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setImmediate, setTimeout as sleep } from 'node:timers/promises';
import type { LineWriter } from '../lib/observability/line-writer.ts';
import type { Telemetry } from '../lib/observability/telemetry.ts';
import type { ExchangeParts } from './exchange.ts';

/** The parts of an instance, which are released at its end. */
type ReleasedParts = ExchangeParts & {
  readonly loops: AbortController;
  readonly server: Server;
  readonly telemetry: Telemetry | undefined;
  readonly lines: LineWriter;
};

/** In seconds: time limit of each of the last steps, so that the process ends in time. */
const LAST_STEP = 0.5;

/** In seconds: time limit for the last lines of the log. */
export const LAST_LINES = 0.3;

/** Ends an instance: not ready, drain, and only then the connections to the database. Resolves when nothing is left. */
export async function shutDown(parts: ReleasedParts): Promise<void> {
  const { service, loops, telemetry, lines } = parts;
  service.readiness.beginShutdown();
  loops.abort();
  await sleep(service.settings.shutdown.readinessDelay * 1000);
  await drainRequests(parts);
  service.keySet.stop();
  service.readiness.close();
  await Promise.all([close(parts), service.database.close(LAST_STEP)]);
  await telemetry?.shutDown();
  await lines.end(LAST_LINES);
}

/** The drain ends when no request is in flight: answered, cancelled at the server's own limit, or timed out. */
async function drainRequests({ service, admissions, inFlight }: ReleasedParts): Promise<void> {
  const { settings, log, database, keySet } = service;
  const { drainTimeout, serverTimeout } = settings.shutdown;
  const cancel = () => {
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
  if (isIdle) return log.info('shutdown_drained');
  log.warning('shutdown_drain_timeout', { in_flight: inFlight.count });
  cancel();
}

/** Responses that are being sent have half a second (`LAST_STEP`). Connections without one are closed at once. */
async function close({ server, connections, responses }: ReleasedParts): Promise<void> {
  const closed = once(server, 'close');
  // http's own close would also cut off responses that are not sent yet.
  NetServer.prototype.close.call(server);
  const cut = setTimeout(() => connections.destroyAll(), LAST_STEP * 1000);
  await responses.untilSent();
  server.closeIdleConnections();
  await closed;
  clearTimeout(cut);
}
