import { Problem, unavailable } from '../http/problem.ts';
import type { EventLog } from '../observability/event-log.ts';
import { readMessage } from '../observability/redaction.ts';
import type { Settings } from '../settings/settings.ts';
import type { Database } from './database.ts';
import { isMissingTable, NotSent, reachedTimeLimit } from './faults.ts';
import { Hosts } from './hosts/hosts.ts';
import { SELECT_MIGRATION } from './sender.ts';
import type { StatementText } from './wire/executor.ts';
import type { Row } from './wire/rows.ts';
import { SessionExecutor } from './wire/session-executor.ts';

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

/** Time limit of a check, in seconds. */
const TIME_LIMIT = 0.95;

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
      hosts: new Hosts(settings, log),
      peers: new Set<SessionExecutor>(),
    };
    this.#log = log;
    const limits = { ...settings, poolTimeout: TIME_LIMIT };
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
    const deadline = performance.now() + TIME_LIMIT * 1000;
    if (await this.#isMigrated(deadline)) return 'current';
    return (await this.#findPrivileges(deadline)).is_empty ? 'empty' : 'older';
  }

  /** A session that takes longer to open than the time limit of a check is used by the next check. */
  async #ask(): Promise<void> {
    const deadline = performance.now() + TIME_LIMIT * 1000;
    // Before the first migration, the record of migrations does not exist either.
    if (!(await this.#isMigrated(deadline))) {
      this.#hasSucceeded = false;
      throw unavailable('the migrations have not run yet');
    }
    const { missing, keeps_users } = await this.#findPrivileges(deadline);
    if (missing !== null) throw unavailable(`not ready: the role lacks the privileges ${missing}`);
    if (keeps_users === true && !this.#isDeleteChecked)
      this.#log?.warning('privilege_missing', { privilege: 'DELETE', table: 'users' });
    this.#isDeleteChecked = true;
    this.#hasSucceeded = true;
  }

  async #isMigrated(deadline: number): Promise<boolean> {
    const recorded = await this.#send(SELECT_MIGRATION, [this.#latestMigration], deadline).catch((fault) => {
      if (isMissingTable(fault)) return [];
      if (this.#isServed(fault)) return [{}];
      throw notReady(performance.now() < deadline ? fault : new Error('PostgreSQL did not answer in time'));
    });
    return recorded.length > 0;
  }

  async #findPrivileges(deadline: number): Promise<Privileges> {
    const [row] = await this.#send(SELECT_PRIVILEGES, [], deadline).catch((fault) => {
      if (this.#isServed(fault)) return [{ missing: null, keeps_users: null, is_empty: false }];
      throw notReady(fault);
    });
    return row as Privileges;
  }

  /** Whether a question that got no session does not matter, because other sessions respond. */
  #isServed(fault: unknown): boolean {
    const isNotSent = fault instanceof Problem && !reachedTimeLimit(fault);
    return isNotSent && this.#hasSucceeded && this.#executor.hasResponded(RECENT_MS);
  }

  async #send(text: StatementText, values: readonly unknown[], deadline: number): Promise<readonly Row[]> {
    for (;;) {
      try {
        return await this.#executor.send(text, values, deadline);
      } catch (fault) {
        if (!(fault instanceof NotSent)) throw fault;
      }
    }
  }
}

function notReady(fault: unknown): Problem {
  const cause = fault instanceof Problem ? (fault.cause ?? fault) : fault;
  return unavailable(`not ready: ${readMessage(cause)}`, cause);
}
