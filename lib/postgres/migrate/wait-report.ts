import type { EventLog } from '../../observability/event-log.ts';
import type { Settings } from '../../settings/settings.ts';
import type { Host } from '../hosts/connection-config.ts';
import { Session } from '../hosts/session.ts';

/** In milliseconds: until the first look, between two looks, and between two reports. */
const FIRST_LOOK_MS = 5000;
const LOOK_MS = 1000;
const REPORT_MS = 60_000;

/** Also finds the sessions whose snapshot `create index concurrently` waits for. PostgreSQL may hide all but the pid. */
const BLOCKERS = `select pid, application_name,
  (extract(epoch from clock_timestamp() - xact_start) * 1000)::bigint::float8 as transaction_age_ms
  from pg_stat_activity where pid = any(pg_blocking_pids($1))`;

/** Reports for which sessions a migration waits, by a session of its own, until the returned function is called. */
export function reportWaits(
  postgres: Settings['postgres'],
  { at, processID }: { readonly at: Host; readonly processID: number | null },
  log: EventLog,
  migration: string,
): () => void {
  let asking: Session | undefined;
  let timer = setTimeout(look, FIRST_LOOK_MS);

  async function look(): Promise<void> {
    // A migration waits for locks in short attempts, so that a look may find nothing.
    const waits = await findBlockers().catch(() => []);
    if (waits.length > 0) log.warning('migration_waiting', { migration, waits_for: waits.map(withoutNulls) });
    if (!timer.hasRef()) return;
    timer = setTimeout(look, waits.length > 0 ? REPORT_MS : LOOK_MS);
  }

  async function findBlockers(): Promise<readonly Record<string, unknown>[]> {
    if (!asking?.connection.stream.writable) {
      asking = new Session(postgres, at);
      await asking.openInTime();
    }
    return (await asking.query({ text: BLOCKERS, values: [processID] })).rows;
  }

  return () => {
    clearTimeout(timer);
    timer.unref();
    asking?.abandon();
  };
}

function withoutNulls(row: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(row).filter(([, value]) => value !== null && value !== ''));
}
