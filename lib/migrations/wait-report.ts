import type { EventLog } from '../observability/event-log.ts';
import type { MigrationSession } from '../postgres/index.ts';

/** In milliseconds: until the first look, between two looks, and between two reports. */
const FIRST_LOOK_MS = 5000;
const LOOK_MS = 1000;
const REPORT_MS = 60_000;

/**
 * The sessions for which the one with the pid $1 waits, also those whose snapshot `create index concurrently` waits for.
 * PostgreSQL may hide all but their pids. Behind a pooler, where no session has this pid, its statement $2 finds it, of
 * which PostgreSQL shows the beginning. A prepared transaction has the pid 0. Its name is found by the lock on its id.
 */
const BLOCKERS = `
  with waiting as (
    select pid from pg_stat_activity
    where pid = $1 or starts_with($2, nullif(query, '')) and wait_event_type = 'Lock'
  ), blocker as (
    select distinct unnest(pg_blocking_pids(pid)) as pid from waiting
  ), prepared as (
    select distinct 0 as pid, gid from pg_locks as waited, pg_locks as held, pg_locks as own, pg_prepared_xacts
    where waited.pid in (select pid from waiting) and not waited.granted and held.pid is null and own.pid is null
      and (held.locktype, held.database, held.relation, held.transactionid)
        is not distinct from (waited.locktype, waited.database, waited.relation, waited.transactionid)
      and own.virtualtransaction = held.virtualtransaction and own.transactionid = transaction
  )
  select nullif(pid, 0) as pid, coalesce(nullif(application_name, ''), backend_type) as application_name,
    (extract(epoch from clock_timestamp() - xact_start) * 1000)::bigint::float8 as transaction_age_ms,
    gid as prepared_transaction
  from blocker left join pg_stat_activity using (pid) left join prepared using (pid)`;

/** Reports for which sessions a migration waits, until the returned function is called. */
export function reportWaits(session: MigrationSession, log: EventLog, migration: string): () => void {
  let timer = setTimeout(look, FIRST_LOOK_MS);

  async function look(): Promise<void> {
    // A migration waits for locks in short attempts, so that a look may find nothing.
    const waits = await session.askAside(BLOCKERS).catch(() => []);
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
