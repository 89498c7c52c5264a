import { runMigrations } from '../lib/migrations/index.ts';
import { createFailureLog } from '../lib/observability/failures.ts';
import type { Service } from '../lib/service.ts';

/** In milliseconds, between two runs; doubled after each failure. */
const MIN_PAUSE_MS = 500;
const MAX_PAUSE_MS = 10_000;

/** Runs the migrations as soon as PostgreSQL is available, and repeats this until they have run. */
export function startMigrationLoop({ settings, log }: Service): { stop(): void } {
  const stopping = new AbortController();
  const failures = createFailureLog(log, 'migration_failed');
  let pause = MIN_PAUSE_MS;
  let timer: NodeJS.Timeout | undefined;

  async function attempt(): Promise<void> {
    try {
      await runMigrations(settings.postgres, stopping.signal);
      log.info('database_migrated');
    } catch (cause) {
      if (stopping.signal.aborted) return;
      failures.failed(cause);
      timer = setTimeout(attempt, pause);
      pause = Math.min(pause * 2, MAX_PAUSE_MS);
    }
  }

  void attempt();
  return {
    stop() {
      clearTimeout(timer);
      stopping.abort();
    },
  };
}
