import type { AddressInfo } from 'node:net';
import { endpoints } from '../handlers/index.ts';
import { LineWriter } from '../lib/observability/line-writer.ts';
import { redactedCause } from '../lib/observability/redaction.ts';
import { startReporting } from '../lib/observability/reporting.ts';
import { composeService } from '../lib/service.ts';
import type { Settings } from '../lib/settings/settings.ts';
import { BUILD_VERSION } from '../lib/version.ts';
import { Admissions } from './admission/index.ts';
import { runCleanupLoop, runMigrationLoop } from './background-loops.ts';
import { documentation } from './docs/docs.ts';
import { listen, urlOf } from './listen.ts';
import { observe } from './metrics.ts';
import { RequestsInFlight } from './requests-in-flight.ts';
import { Router } from './router.ts';
import { createHttpServer } from './server.ts';
import { LAST_LINES_S, shutDown } from './shutdown.ts';
import { Connections } from './sockets/connections.ts';
import { UnflushedResponses } from './sockets/unflushed-responses.ts';

export type Host = Awaited<ReturnType<typeof startHost>>;

/**
 * Starts an instance. It listens at once, and connects to PostgreSQL and the identity provider when they are available.
 * `logTo` is the descriptor of a file for the log, instead of standard output.
 *
 * @throws an error with code EADDRINUSE or EACCES if it cannot listen
 */
export async function startHost(settings: Settings, { logTo }: { logTo?: number } = {}) {
  const lines = new LineWriter(logTo);
  const { log, telemetry } = await startReporting(settings, lines.write);
  lines.onResumed = (count) => log.error('log_lines_dropped', { count });
  const service = composeService({ settings, log, tracing: telemetry?.tracing });
  const inFlight = new RequestsInFlight();
  const admissions = new Admissions({ database: service.database, inFlight, log });
  const connections = new Connections();
  const responses = new UnflushedResponses();
  const documents = settings.environment === 'development' ? documentation(endpoints, settings) : [];
  const router = new Router([...endpoints, ...documents], service);
  const parts = { service, router, connections, inFlight, admissions, responses, telemetry, lines };
  if (telemetry && settings.otel.metricsExporter !== 'none') observe(telemetry.meter, parts);
  const server = createHttpServer(parts);
  server.on('connection', () => admissions.acceptQueue.onConnection());
  server.on('close', () => admissions.refusals.flush());
  await listen(server, settings);
  // A connection that cannot be accepted, for example without a free descriptor, must not end the process.
  server.on('error', (cause) => log.warning('accept_failed', { cause: redactedCause(cause) }));
  service.keySet.start();
  const loops = new AbortController();
  if (settings.postgres.migrate) void runMigrationLoop(service, loops.signal);
  void runCleanupLoop(service, loops.signal);
  const { port } = server.address() as AddressInfo;
  log.info('listening', { version: BUILD_VERSION, host: settings.host, port });
  let ending: Promise<void> | undefined;

  return {
    port,
    url: urlOf(settings.host, port),
    /** The check of /ready, without a request. @throws {Problem} service_unavailable_error, within a second */
    checkReadiness: () => service.readiness.check(),
    /** Drains and releases everything, once. Resolves when nothing is left. */
    shutDown(): Promise<void> {
      ending ??= shutDown({ ...parts, loops, server });
      return ending;
    },
    /** Logs why the process ends without a drain. Resolves when the lines are written. */
    logCrash(error: Error): Promise<void> {
      log.error('process_crashed', { cause: redactedCause(error) });
      return lines.end(LAST_LINES_S);
    },
  };
}
