import type { Stage } from '../../benchmark/stage/stage.ts';

/** What the sessions of a service at a database have done so far. */
export type PageWork = {
  /** Pages that shared buffers did not have. */
  readonly reads: number;
  /** Bytes written to the log. */
  readonly wal: number;
};

/** Reads what the sessions at a database have done, the asking one not included. PostgreSQL 18 counts them one by one. */
export async function pageWorkOf(stage: Pick<Stage, 'query'>, database: string): Promise<PageWork> {
  const [row] = await stage.query(
    database,
    `SELECT coalesce(sum((SELECT sum(reads) FROM pg_stat_get_backend_io(pid))), 0)::float8 AS reads,
       coalesce(sum((SELECT wal_bytes FROM pg_stat_get_backend_wal(pid))), 0)::float8 AS wal
     FROM pg_stat_activity
     WHERE datname = current_database() AND backend_type = 'client backend' AND pid <> pg_backend_pid()`,
  );
  return { reads: Number(row?.reads), wal: Number(row?.wal) };
}
