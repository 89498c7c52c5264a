import { setTimeout as sleep } from 'node:timers/promises';
import { Cleanup } from '../lib/cleanup.ts';
import { runMigrations } from '../lib/migrations/index.ts';
import { FailureLog } from '../lib/observability/event-log.ts';
import type { Service } from '../lib/service.ts';

/** Milliseconds between two runs of the migrations; doubled after each failure. */
const MIGRATION_PAUSE = { shortest: 500, longest: 10_000 };

/** Milliseconds until the first cleanup. Instances that start together do not clean up together. */
const FIRST_CLEANUP = { earliest: 5000, latest: 25_000 };
const CLEANUP_INTERVAL_MS = 600_000;

/** Runs the migrations as soon as PostgreSQL is available, and repeats this until they have run. */
export async function runMigrationLoop({ settings, log }: Service, stopped: AbortSignal) {
  const failures = new FailureLog(log, 'migration_failed');
  const { shortest, longest } = MIGRATION_PAUSE;
  for (let pause = shortest; !stopped.aborted; pause = Math.min(pause * 2, longest)) {
    try {
      await runMigrations(settings.postgres, stopped);
      return log.info('database_migrated');
    } catch (cause) {
      if (!stopped.aborted) failures.onFailure(cause);
    }
    await wait(pause, stopped);
  }
}

/**
 * Deletes expired keys and changes, within half a minute of the start and then every ten minutes, while PostgreSQL
 * accepts writes.
 */
export async function runCleanupLoop({ settings, log, database }: Service, stopped: AbortSignal) {
  const cleanup = new Cleanup(database.statements, settings.changesRetention);
  const failures = new FailureLog(log, 'maintenance_failed');
  const { earliest, latest } = FIRST_CLEANUP;
  await wait(earliest + Math.random() * (latest - earliest), stopped);
  for (; !stopped.aborted; await wait(CLEANUP_INTERVAL_MS, stopped)) {
    try {
      if (await database.statements.acceptsWrites()) await cleanup.run(stopped);
      failures.onSuccess();
    } catch (cause) {
      failures.onFailure(cause);
    }
  }
}

/** Waits until the time is over or `stopped` is aborted. The wait does not keep the process alive. */
async function wait(milliseconds: number, stopped: AbortSignal): Promise<void> {
  await sleep(milliseconds, undefined, { signal: stopped, ref: false }).catch(() => undefined);
}
