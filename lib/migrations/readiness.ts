import { sql } from 'kysely';
import { unavailable } from '../http/problem.ts';
import type { EventLog } from '../observability/event-log.ts';
import { readMessage } from '../observability/redaction.ts';
import {
  causeOf,
  type Database,
  endsSession,
  type PreparedStatement,
  reachedTimeLimit,
} from '../postgres/index.ts';

/** The tables of the service, in the order in which migrations create them. */
const TABLES = ['users', 'idempotency_keys', 'user_changes_unnumbered', 'user_changes', 'user_changes_head'];

/** The sequence of changes without a position. */
const SEQUENCE = 'user_changes_unnumbered_sequence_seq';

/** What the statements of the service need. */
const NEEDED = [
  'SELECT on kysely_migration',
  ...TABLES.flatMap((table) => ['SELECT', 'INSERT', 'UPDATE', 'DELETE'].map((one) => `${one} on ${table}`)),
  `USAGE on ${SEQUENCE}`,
];

/**
 * Which privileges the role lacks, also on what does not exist, whether it may not delete users, which policies apply, and
 * whether there are no tables.
 */
const selectPrivileges = () => sql<Privileges>`
  select string_agg(needed, ', ') filter (where needed <> 'DELETE on users' and is_granted is not true) as missing,
    string_agg(name, ', ') filter (where needed like 'SELECT%' and row_security_active(relation)) as hidden,
    bool_or(needed = 'DELETE on users' and not is_granted) as keeps_users,
    count(relation) filter (where needed like 'DELETE%') = 0 as is_empty
  from unnest(${sql.lit(`{${NEEDED.join()}}`)}::text[]) as needed
  cross join lateral (select split_part(needed, ' on ', 2) as name) as named
  cross join lateral (select to_regclass(name) as relation) as found
  cross join lateral (select case when needed like 'USAGE%' then has_sequence_privilege(relation, 'USAGE')
    else has_table_privilege(relation, split_part(needed, ' on ', 1)) end as is_granted) as granted`;

/** Refers to no row of a table, but PostgreSQL opens the table's file for it (58P01 if the file is lost). */
const openTables = () =>
  sql`select ${sql.join(TABLES.map((table) => sql`exists (select from ${sql.table(table)} where ctid = '(0,0)')`))}`;

type Privileges = {
  readonly missing: string | null;
  readonly hidden: string | null;
  readonly keeps_users: boolean | null;
  readonly is_empty: boolean;
};

/** The schema of a database: of this version or a later one, of an earlier one, or none. */
export type SchemaState = 'current' | 'older' | 'empty';

/** Time limit of a check. One that gets no session succeeds if any session has responded within this time. */
const TIME_LIMIT_MS = 950;

/**
 * Whether the database is connected and has the tables that this version needs: its latest migration is recorded. It asks
 * one question at a time, which no load on the sessions delays.
 */
export class Readiness {
  readonly #database: Database;
  readonly #log: EventLog | undefined;
  readonly #selectPrivileges: PreparedStatement<Record<string, never>, Privileges>;
  readonly #openTables: PreparedStatement<Record<string, never>, unknown>;
  #asking: Promise<string | undefined> | undefined;
  #hasSucceeded = false;
  #hasShutdownBegun = false;
  #isDeleteChecked = false;

  constructor(database: Database, log?: EventLog) {
    this.#database = database;
    this.#log = log;
    this.#selectPrivileges = database.statements.ownSessionRead('SELECT', selectPrivileges, 'readiness');
    this.#openTables = database.statements.ownSessionRead('SELECT', openTables, 'readiness');
  }

  /** @throws {Problem} service_unavailable_error, within a second */
  async check(): Promise<void> {
    if (this.#hasShutdownBegun) throw unavailable('the shutdown has begun');
    // A question that takes longer is that of the next check, too.
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new Error('PostgreSQL did not answer in time')),
      TIME_LIMIT_MS,
    );
    const reason = await Promise.race([this.#asking, late.promise])
      .catch((fault) => this.#ignoreIfServed(fault))
      .finally(() => clearTimeout(timer));
    if (reason) throw unavailable(reason);
  }

  beginShutdown(): void {
    this.#hasShutdownBegun = true;
  }

  /** @throws {Problem} service_unavailable_error if it is unknown */
  async findSchemaState(): Promise<SchemaState> {
    if (await this.#database.statements.isMigrated()) return 'current';
    return (await this.#findPrivileges()).is_empty ? 'empty' : 'older';
  }

  /** Resolves with why the service is not ready, if it is not. */
  async #ask(): Promise<string | undefined> {
    if (!(await this.#database.statements.isMigrated())) {
      this.#hasSucceeded = false;
      return 'the migrations have not run yet';
    }
    const { missing, hidden, keeps_users } = await this.#findPrivileges();
    this.#hasSucceeded = (missing ?? hidden) === null;
    if (missing !== null) return `not ready: the role lacks the privileges ${missing}`;
    if (hidden !== null)
      return `not ready: policies may hide rows from the role (row_security_active): ${hidden}`;
    if (this.#database.statements.engine.isPostgres) await this.#openTables.run({});
    if (keeps_users === true && !this.#isDeleteChecked)
      this.#log?.warning('privilege_missing', { privilege: 'DELETE', table: 'users' });
    this.#isDeleteChecked = true;
    return undefined;
  }

  async #findPrivileges(): Promise<Privileges> {
    const [privileges] = await this.#selectPrivileges.run({});
    return privileges as Privileges;
  }

  /** A question without an answer does not matter while sessions respond. An error response to it is an answer. */
  #ignoreIfServed(fault: unknown): undefined {
    const cause = causeOf(fault);
    const isAnswer = !endsSession(cause) && !reachedTimeLimit(cause);
    if (!isAnswer && this.#hasSucceeded && this.#database.hasResponded(TIME_LIMIT_MS)) return undefined;
    throw unavailable(`not ready: ${readMessage(cause)}`, cause);
  }
}
