import type { EventLog } from '../observability/event-log.ts';
import type { MigrationSession } from '../postgres/index.ts';

/** In milliseconds: until the first look, between two looks, and between two reports. */
const FIRST_LOOK_MS = 5000;
const LOOK_MS = 1000;
const REPORT_MS = 60_000;

/** Reports for which sessions a migration waits, until the returned function is called. */
export function reportWaits(session: MigrationSession, log: EventLog, migration: string): () => void {
  let timer = setTimeout(look, FIRST_LOOK_MS);

  async function look(): Promise<void> {
    // A migration waits for locks in short attempts, so that a look may find nothing.
    const waits = await session.findBlockers().catch(() => []);
    if (waits.length > 0) log.warning('migration_waiting', { migration, waits_for: waits.map(withoutNulls) });
    if (!timer.hasRef()) return;
    timer = setTimeout(look, waits.length > 0 ? REPORT_MS : LOOK_MS);
  }

  return () => {
    clearTimeout(timer);
    timer.unref();
  };
}

function withoutNulls(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null && value !== ''));
}
