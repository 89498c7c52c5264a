import { migrate } from '../lib/database/migrate.ts';
import { describe } from '../lib/observability/app-error.ts';
import type { Service } from '../lib/service.ts';

const PAUSE = 500;

/** Runs the migrations as soon as PostgreSQL is there, trying until they have run. */
export function keepMigrated({ settings, log }: Service): { stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  let failures = 0;

  async function attempt(): Promise<void> {
    try {
      await migrate(settings.postgres);
      log.info('database_migrated');
    } catch (cause) {
      failures += 1;
      if (failures === 1) log.warning('migration_failed', { cause: describe(cause) });
      if (!isStopped) timer = setTimeout(attempt, PAUSE);
    }
  }

  void attempt();
  return {
    stop() {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
