import { Problem, unavailable } from '../http/problem.ts';
import type { EventLog } from '../observability/event-log.ts';
import { readMessage } from '../observability/redaction.ts';
import type { Settings } from '../settings/settings.ts';
import type { Database } from './database.ts';
import { SELECT_MIGRATION } from './sender.ts';
import { SessionExecutor } from './session-executor.ts';
import { causeOf, isMissingTable, PostgresHosts, reachedTimeLimit } from './sessions/index.ts';

/** The tables of the service, in the order in which migrations create them. */
const TABLES = ['users', 'idempotency_keys', 'user_changes_unnumbered', 'user_changes', 'user_changes_head'];

/** The sequence of changes without a position. */
const SEQUENCE = 'user_changes_unnumbered_sequence_seq';

/** Which privileges the role lacks, whether it may not delete users, and whether the database has none of the tables. */
const SELECT_PRIVILEGES = {
  sql: `select nullif(concat_ws(', ', string_agg(privilege || ' on ' || name, ', ')
      filter (where privilege <> 'DELETE' and not has_table_privilege(to_regclass(name), privilege)),
      case when not has_sequence_privilege(to_regclass('${SEQUENCE}'), 'USAGE') then 'USAGE on ${SEQUENCE}' end), '') as missing,
    bool_or(privilege = 'DELETE' and name = 'users' and not has_table_privilege(to_regclass(name), privilege)) as keeps_users,
    count(to_regclass(name)) = 0 as is_empty
    from unnest('{${TABLES.join()}}'::text[]) as name, unnest('{SELECT,INSERT,UPDATE,DELETE}'::text[]) as privilege`,
  name: 'select-privileges',
  isRead: true,
};

type Privileges = {
  readonly missing: string | null;
  readonly keeps_users: boolean | null;
  readonly is_empty: boolean;
};

/** The schema of a database: of this version or a later one, of an earlier one, or none. */
export type SchemaState = 'current' | 'older' | 'empty';

/** Of a check. */
const TIME_LIMIT_MS = 950;

/** In milliseconds. A check that gets no session succeeds if another one has responded within this time. */
const RECENT_MS = 1000;

/**
 * Whether the database is connected and has the tables that this version needs: its latest migration is recorded. It asks
 * over a session of its own, which no load on the other sessions delays, one question at a time. If PostgreSQL refuses that
 * session, it borrows another one.
 */
export class Readiness {
  readonly #executor: SessionExecutor;
  readonly #latestMigration: string;
  #asking: Promise<void> | undefined;
  #hasSucceeded = false;
  #hasShutdownBegun = false;
  #isDeleteChecked = false;
  readonly #log: EventLog | undefined;

  /** Connects when it is first asked: beside the sessions of a database, if there is one. */
  constructor(settings: Settings['postgres'], latestMigration: string, log?: EventLog, database?: Database) {
    const { hosts, peers } = database ?? {
      hosts: new PostgresHosts(settings, log),
      peers: new Set<SessionExecutor>(),
    };
    this.#log = log;
    const limits = { ...settings, poolTimeout: TIME_LIMIT_MS / 1000 };
    this.#executor = new SessionExecutor(limits, hosts, { maxSessions: 1, depth: 1, peers });
    this.#latestMigration = latestMigration;
  }

  /** @throws {Problem} service_unavailable_error, within a second */
  check(): Promise<void> {
    if (this.#hasShutdownBegun) return Promise.reject(unavailable('the shutdown has begun'));
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  /** Makes every later check fail. */
  beginShutdown(): void {
    this.#hasShutdownBegun = true;
  }

  close(): void {
    this.#executor.cancel();
  }

  /** @throws {Problem} service_unavailable_error if it is unknown */
  async findSchemaState(): Promise<SchemaState> {
    const { isMigrated, is_empty } = await this.#find(performance.now() + TIME_LIMIT_MS);
    if (isMigrated) return 'current';
    return is_empty ? 'empty' : 'older';
  }

  async #ask(): Promise<void> {
    const deadline = performance.now() + TIME_LIMIT_MS;
    const found = await this.#find(deadline).catch((fault) => this.#ignoreNotSent(fault, deadline));
    if (!found) return;
    const { isMigrated, missing, keeps_users } = found;
    this.#hasSucceeded = isMigrated && missing === null;
    if (!isMigrated) throw unavailable('the migrations have not run yet');
    if (missing !== null) throw unavailable(`not ready: the role lacks the privileges ${missing}`);
    if (keeps_users === true && !this.#isDeleteChecked)
      this.#log?.warning('privilege_missing', { privilege: 'DELETE', table: 'users' });
    this.#isDeleteChecked = true;
  }

  /** A session that takes longer to open than the time limit of a check is used by the next check. */
  async #find(deadline: number) {
    // Before the first migration, the record of migrations does not exist either.
    const recorded = await this.#executor
      .send(SELECT_MIGRATION, [this.#latestMigration], deadline)
      .catch((fault) => (isMissingTable(fault) ? [] : Promise.reject(fault)));
    const [privileges] = await this.#executor.send(SELECT_PRIVILEGES, [], deadline);
    return { isMigrated: recorded.length > 0, ...(privileges as Privileges) };
  }

  /** A question that got no session does not matter while other sessions respond. */
  #ignoreNotSent(fault: unknown, deadline: number): undefined {
    const isNotSent = fault instanceof Problem && !reachedTimeLimit(fault);
    if (isNotSent && this.#hasSucceeded && this.#executor.hasResponded(RECENT_MS)) return undefined;
    const isLate = performance.now() >= deadline;
    const cause = isLate ? new Error('PostgreSQL did not answer in time') : causeOf(fault);
    throw unavailable(`not ready: ${readMessage(cause)}`, cause);
  }
}
