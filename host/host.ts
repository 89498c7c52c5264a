import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { endpoints } from '../handlers/index.ts';
import { askingForUnnumbered } from '../lib/changes/unnumbered.ts';
import { createEventLog } from '../lib/observability/event-log.ts';
import { createLineWriter, type LineWriter } from '../lib/observability/line-writer.ts';
import { loadTelemetry } from '../lib/observability/load-telemetry.ts';
import type { Readings } from '../lib/observability/metrics.ts';
import { redactedCause } from '../lib/observability/redaction.ts';
import { warnAboutSettings } from '../lib/observability/settings-warnings.ts';
import { composeService, type Service } from '../lib/service.ts';
import type { Settings } from '../lib/settings/settings.ts';
import { BUILD_VERSION } from '../lib/version.ts';
import { createAdmissions } from './admission/admission.ts';
import { createRefusalBudget } from './admission/refusal-budget.ts';
import { createRefusalCounts, type RefusalCounts } from './admission/refusal-counts.ts';
import { startCleanupLoop } from './cleanup-loop.ts';
import { documentation } from './docs/docs.ts';
import { startMigrationLoop } from './migration-loop.ts';
import { createRequestsInFlight, type RequestsInFlight } from './requests-in-flight.ts';
import { createResponseWriter } from './response-writer.ts';
import { createRouter } from './router.ts';
import { createHttpServer } from './server.ts';
import { createShutdown, LAST_LINES, type Shutdown } from './shutdown.ts';
import { createRequestOrder } from './sockets/http-pipelining.ts';
import { urlOf } from './url.ts';

/**
 * Maximum number of connections that wait to be accepted. After a short outage, a thousand callers connect again at
 * once, and a connection without a place is tried again a second later. The system may set a lower limit.
 */
const BACKLOG = 4096;

/** A running instance. */
export type Host = {
  readonly port: number;
  readonly url: string;
  /** The check of /ready, without a request. @throws {Problem} service_unavailable_error, within a second */
  checkReadiness(): Promise<void>;
  /** Drains and releases everything, once. Resolves when nothing is left. */
  shutDown(): Promise<void>;
  /** Logs why the process ends without a drain. Resolves when the lines are written. */
  logCrash(error: Error): Promise<void>;
};

/**
 * Starts an instance. It listens at once, and connects to PostgreSQL and the identity provider when they are available.
 * `logTo` is the descriptor of a file for the log, instead of standard output.
 *
 * @throws an error with code EADDRINUSE or EACCES if it cannot listen
 */
export async function startHost(settings: Settings, { logTo }: { logTo?: number } = {}): Promise<Host> {
  const onResumed = (count: number) => log.error('log_lines_dropped', { count });
  const lines = createLineWriter({ descriptor: logTo, onResumed });
  const telemetry = await loadTelemetry(settings, lines.write);
  const tracing = telemetry?.tracing;
  const log = createEventLog(settings, lines.write, tracing);
  warnAboutSettings(settings, log);

  const service = composeService({ settings, log, tracing });
  const drain = createRequestsInFlight();
  const refusals = createRefusalCounts(log);
  const shutdown = createShutdown();
  if (settings.otel.exportsMetrics)
    telemetry?.observe(readingsOf(service, { drain, shutdown, refusals, lines }));
  const readiness = shutdown.readinessUntilBegun(service.readiness);
  const served =
    settings.environment === 'development'
      ? [...endpoints, ...documentation(endpoints, settings)]
      : endpoints;
  const router = createRouter(served, { ...service, readiness });
  const responses = createResponseWriter();
  const requestOrder = createRequestOrder();
  const admissions = createAdmissions(service.database, {
    inFlight: () => drain.inFlight - requestOrder.waitingCount,
    budget: createRefusalBudget(),
    counts: refusals,
  });
  const server = createHttpServer({ service, router, requestOrder, admissions, drain, responses, shutdown });
  server.on('close', refusals.flush);
  await listen(server, settings);
  // A connection that cannot be accepted, for example without a free descriptor, must not end the process.
  server.on('error', (cause) => log.warning('accept_failed', { cause: redactedCause(cause) }));
  service.keySet.start();
  const migrations = settings.postgres.migrate ? startMigrationLoop(service) : undefined;
  const maintenance = startCleanupLoop(service);
  const { port } = server.address() as AddressInfo;
  log.info('listening', { version: BUILD_VERSION, host: settings.host, port });

  return {
    port,
    url: urlOf(settings.host, port),
    checkReadiness: () => readiness.check(),
    logCrash(error) {
      log.error('process_crashed', { cause: redactedCause(error) });
      return lines.end(LAST_LINES);
    },
    shutDown: () =>
      shutdown.run({
        service,
        migrations,
        maintenance,
        admissions,
        drain,
        server,
        responses,
        telemetry,
        lines,
      }),
  };
}

type Observed = {
  readonly drain: RequestsInFlight;
  readonly shutdown: Shutdown;
  readonly refusals: RefusalCounts;
  readonly lines: LineWriter;
};

function readingsOf(
  { database, tokenVerifier, keySet, changes, idempotency }: Service,
  { drain, shutdown, refusals, lines }: Observed,
): Readings {
  return {
    requestsInFlight: drain.callers,
    requestsRefused: refusals.byReason,
    connections: database.connections,
    tokenCache: tokenVerifier.counts,
    idempotency,
    jwksRefreshes: keySet.refreshes,
    jwksAge: () => keySet.age,
    statementsRetried: database.statements.retried,
    drainAge: () => shutdown.drainAge,
    linesDropped: lines.countDropped,
    changesWaiting: () => changes.waiting,
    changesUnnumbered: askingForUnnumbered(database.statements),
  };
}

async function listen(server: Server, { host, port }: Settings): Promise<void> {
  server.listen({ host, port, backlog: BACKLOG });
  await once(server, 'listening');
}
