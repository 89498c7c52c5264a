import { sql } from 'kysely';

/**
 * The common table expression `clock` with one row: `now` is PostgreSQL's time, to the millisecond. Citus evaluates no
 * function of the time in a statement that writes, but in a query of its own.
 */
export const clock = sql`clock as materialized (select clock_timestamp()::timestamptz(3) as now)`;

/**
 * All rows of `given`. PostgreSQL takes a limit that it does not know for a tenth of the rows, and plans for one row. It then
 * keeps this plan: for ten rows it preferred a plan for the values of each statement, and a single update took three times
 * as long.
 */
export const eachGiven = sql`(select * from given limit (select count(*) from given)) as given`;

/**
 * A condition that always holds, for an insert from a query over common table expressions. Because it names a table of
 * the schema, Citus sends the insert to the worker of the schema. Otherwise it opens a transaction at every worker, so that
 * the outage of one stops all of them. No name is null, which PostgreSQL 17 and later know without reading the table.
 */
export const isInSchema = sql`not exists (select from kysely_migration where name is null)`;
