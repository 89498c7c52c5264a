import { maintaining } from '../lib/cleanup.ts';
import { createFailureLog } from '../lib/observability/failures.ts';
import type { Service } from '../lib/service.ts';

/** In milliseconds. Instances that start together do not clean up together. */
const FIRST = { earliest: 5000, latest: 25_000 };
const INTERVAL = 600_000;

/**
 * Deletes expired keys and changes, within half a minute of the start and then every ten minutes, while PostgreSQL
 * accepts writes.
 */
export function startCleanupLoop({ settings, log, database }: Service): { stop(): void } {
  const maintain = maintaining(database.statements, settings.changesRetention);
  const failures = createFailureLog(log, 'maintenance_failed');
  const stopped = new AbortController();
  let timer = setTimeout(run, FIRST.earliest + Math.random() * (FIRST.latest - FIRST.earliest)).unref();

  async function run(): Promise<void> {
    try {
      if (await database.statements.acceptsWrites()) await maintain(stopped.signal);
      failures.succeeded();
    } catch (cause) {
      failures.failed(cause);
    }
    if (!stopped.signal.aborted) timer = setTimeout(run, INTERVAL).unref();
  }

  return {
    stop() {
      stopped.abort();
      clearTimeout(timer);
    },
  };
}
