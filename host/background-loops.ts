import { maintaining } from '../lib/cleanup.ts';
import { runMigrations } from '../lib/migrations/index.ts';
import { createFailureLog } from '../lib/observability/event-log.ts';
import type { Service } from '../lib/service.ts';

/** Milliseconds between two runs of the migrations; doubled after each failure. */
const MIGRATION_PAUSE = { shortest: 500, longest: 10_000 };

/** Milliseconds until the first cleanup. Instances that start together do not clean up together. */
const FIRST_CLEANUP = { earliest: 5000, latest: 25_000 };
const CLEANUP_INTERVAL_MS = 600_000;

/** Runs the migrations as soon as PostgreSQL is available, and repeats this until they have run. */
export function startMigrationLoop({ settings, log }: Service) {
  const failures = createFailureLog(log, 'migration_failed');
  let pause = MIGRATION_PAUSE.shortest;
  return startLoop(0, async (stopped) => {
    try {
      await runMigrations(settings.postgres, stopped);
      log.info('database_migrated');
      return undefined;
    } catch (cause) {
      if (!stopped.aborted) failures.failed(cause);
      const next = pause;
      pause = Math.min(pause * 2, MIGRATION_PAUSE.longest);
      return next;
    }
  });
}

/**
 * Deletes expired keys and changes, within half a minute of the start and then every ten minutes, while PostgreSQL
 * accepts writes.
 */
export function startCleanupLoop({ settings, log, database }: Service) {
  const maintain = maintaining(database.statements, settings.changesRetention);
  const failures = createFailureLog(log, 'maintenance_failed');
  const first = FIRST_CLEANUP.earliest + Math.random() * (FIRST_CLEANUP.latest - FIRST_CLEANUP.earliest);
  return startLoop(first, async (stopped) => {
    try {
      if (await database.statements.acceptsWrites()) await maintain(stopped);
      failures.succeeded();
    } catch (cause) {
      failures.failed(cause);
    }
    return CLEANUP_INTERVAL_MS;
  });
}

/** Runs `task` after `first` milliseconds, and again after as many as it returns, until it returns none. */
function startLoop(first: number, task: (stopped: AbortSignal) => Promise<number | undefined>) {
  const stopping = new AbortController();
  let timer = setTimeout(run, first).unref();

  async function run(): Promise<void> {
    const pause = await task(stopping.signal);
    if (pause !== undefined && !stopping.signal.aborted) timer = setTimeout(run, pause).unref();
  }

  return {
    stop(): void {
      clearTimeout(timer);
      stopping.abort();
    },
  };
}
