import { setTimeout as sleep } from 'node:timers/promises';
import { Cleanup } from '../lib/cleanup.ts';
import { runMigrations } from '../lib/migrations/index.ts';
import { FailureLog } from '../lib/observability/failure-log.ts';
import type { Service } from '../lib/service.ts';

/** Milliseconds between two runs of the migrations; doubled after each failure. */
const MIGRATION_PAUSE_MS = { shortest: 500, longest: 10_000 };

/** Milliseconds until the first cleanup. Instances that start together do not clean up together. */
const FIRST_CLEANUP_MS = { earliest: 5000, latest: 25_000 };
const CLEANUP_INTERVAL_MS = 600_000;

/** Milliseconds between two looks at the schema, and until a database without tables is migrated. */
const SCHEMA_LOOK_MS = 1000;
const EMPTY_PATIENCE_MS = 30_000;

/**
 * Runs the migrations as soon as PostgreSQL is available, and repeats this until they have run. A database that is then
 * created again, or restored in an older state, is migrated, too: an empty one later, because it may be restored just now.
 */
export async function runMigrationLoop(service: Service, stopped: AbortSignal) {
  const { log } = service;
  while (!stopped.aborted) {
    await migrateUntilDone(service, stopped);
    if (stopped.aborted) return;
    log.info('database_migrated');
    await untilUnmigrated(service, stopped);
  }
}

async function migrateUntilDone({ settings, log }: Service, stopped: AbortSignal): Promise<void> {
  const failures = new FailureLog(log, 'migration_failed');
  const { shortest, longest } = MIGRATION_PAUSE_MS;
  for (let pause = shortest; !stopped.aborted; pause = Math.min(pause * 2, longest)) {
    try {
      return await runMigrations(settings.postgres, stopped, log);
    } catch (cause) {
      if (!stopped.aborted) failures.onFailure(cause);
    }
    await wait(pause, stopped);
  }
}

async function untilUnmigrated({ readiness, log }: Service, stopped: AbortSignal): Promise<void> {
  let emptySince: number | undefined;
  while (!stopped.aborted) {
    await wait(SCHEMA_LOOK_MS, stopped);
    const state = await readiness.findSchemaState().catch(() => undefined);
    if (state === 'older') return;
    if (state === 'current') emptySince = undefined;
    if (state !== 'empty') continue;
    if (emptySince === undefined) log.warning('database_empty', { migrated_in_s: EMPTY_PATIENCE_MS / 1000 });
    emptySince ??= performance.now();
    if (performance.now() - emptySince >= EMPTY_PATIENCE_MS) return;
  }
}

/**
 * Deletes expired keys and changes, within half a minute of the start and then every ten minutes, while PostgreSQL
 * accepts writes.
 */
export async function runCleanupLoop({ settings, log, database }: Service, stopped: AbortSignal) {
  const cleanup = new Cleanup(database.statements, settings.changesRetention);
  const failures = new FailureLog(log, 'cleanup_failed');
  const { earliest, latest } = FIRST_CLEANUP_MS;
  await wait(earliest + Math.random() * (latest - earliest), stopped);
  for (; !stopped.aborted; await wait(CLEANUP_INTERVAL_MS, stopped)) {
    try {
      if (await cleanup.isPossible()) await cleanup.run(stopped);
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
