import { sql } from 'kysely';
import { Problem, unavailable } from '../http/problem.ts';
import type { EventLog } from '../observability/event-log.ts';
import { readMessage } from '../observability/redaction.ts';
import { causeOf, type Database, type PreparedStatement, reachedTimeLimit } from '../postgres/index.ts';

/** The tables of the service, in the order in which migrations create them. */
const TABLES = ['users', 'idempotency_keys', 'user_changes_unnumbered', 'user_changes', 'user_changes_head'];

/** The sequence of changes without a position. */
const SEQUENCE = 'user_changes_unnumbered_sequence_seq';

/** Which privileges the role lacks, whether it may not delete users, and whether the database has none of the tables. */
const selectPrivileges = () => sql<Privileges>`
  select nullif(concat_ws(', ', string_agg(privilege || ' on ' || name, ', ')
      filter (where privilege <> 'DELETE' and not has_table_privilege(to_regclass(name), privilege)),
      case when not has_sequence_privilege(to_regclass(${sql.lit(SEQUENCE)}), 'USAGE')
        then ${sql.lit(`USAGE on ${SEQUENCE}`)} end), '') as missing,
    bool_or(privilege = 'DELETE' and name = 'users' and not has_table_privilege(to_regclass(name), privilege)) as keeps_users,
    count(to_regclass(name)) = 0 as is_empty
  from unnest(${sql.lit(`{${TABLES.join()}}`)}::text[]) as name, unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) as privilege`;

type Privileges = {
  readonly missing: string | null;
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
  #asking: Promise<string | undefined> | undefined;
  #hasSucceeded = false;
  #hasShutdownBegun = false;
  #isDeleteChecked = false;

  constructor(database: Database, log?: EventLog) {
    this.#database = database;
    this.#log = log;
    this.#selectPrivileges = database.statements.singleRead('SELECT', selectPrivileges, 'readiness');
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

  /** Makes every later check fail. */
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
    const { missing, keeps_users } = await this.#findPrivileges();
    this.#hasSucceeded = missing === null;
    if (missing !== null) return `not ready: the role lacks the privileges ${missing}`;
    if (keeps_users === true && !this.#isDeleteChecked)
      this.#log?.warning('privilege_missing', { privilege: 'DELETE', table: 'users' });
    this.#isDeleteChecked = true;
    return undefined;
  }

  async #findPrivileges(): Promise<Privileges> {
    const [privileges] = await this.#selectPrivileges.run({});
    return privileges as Privileges;
  }

  /** A question that got no session does not matter while sessions respond. */
  #ignoreIfServed(fault: unknown): undefined {
    const { executors } = this.#database;
    const isUnsent =
      executors.readiness.waitingCount > 0 || (fault instanceof Problem && !reachedTimeLimit(fault));
    if (isUnsent && this.#hasSucceeded && this.#database.hasResponded(TIME_LIMIT_MS)) return undefined;
    const cause = causeOf(fault);
    throw unavailable(`not ready: ${readMessage(cause)}`, cause);
  }
}
