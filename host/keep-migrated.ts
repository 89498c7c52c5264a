import { runMigrations } from '../lib/database/run-migrations.ts';
import { redactedCause } from '../lib/observability/redaction.ts';
import type { Service } from '../lib/service.ts';

const PAUSE = 500;

/** Runs the migrations as soon as PostgreSQL is there, trying until they have run. */
export function keepMigrated({ settings, log }: Service): { stop(): void } {
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let failures = 0;

  async function attempt(): Promise<void> {
    try {
      await runMigrations(settings.postgres, { signal: stopping.signal });
      log.info('database_migrated');
    } catch (cause) {
      if (stopping.signal.aborted) return;
      failures += 1;
      if (failures === 1) log.warning('migration_failed', { cause: redactedCause(cause) });
      timer = setTimeout(attempt, PAUSE);
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
