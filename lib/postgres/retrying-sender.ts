import { setTimeout as sleep } from 'node:timers/promises';
import { Problem, unavailable } from '../http/problem.ts';
import { currentRequest } from '../http/request-scope.ts';
import type { DatabaseSpans } from '../observability/database-span.ts';
import type { Settings } from '../settings/settings.ts';
import { type EngineProfile, engineProfile } from './sessions/engine-profile.ts';
import {
  classifyConflict,
  hasLostSession,
  isLockTimeout,
  isMissingTable,
  isReadOnly,
  isStalePlan,
  isUnmigrated,
  translateFault,
} from './sessions/faults.ts';
import { type Executor, type StatementRequest, timeLimitReached } from './sessions/pending-statement.ts';
import type { Row } from './sessions/rows.ts';
import { nameStatement, type StatementKind, type StatementText } from './sessions/statement-text.ts';

/** The executor of each kind. `lock-waiters` sends a statement that waited for a lock while others waited behind it. */
export type Executors = Readonly<Record<StatementKind | 'lock-waiters', Executor>>;

/** The statements of a request together have this much more time than PostgreSQL gives to one, so that it responds first. */
const GRACE_MS = 250;

/** The pause before a statement that met a conflict is sent again: at most so long the first time, and later. */
const FIRST_PAUSE_MS = 4;
const MAX_PAUSE_MS = 250;

/** Maximum number of times that a statement is prepared again. Its columns may change each time. */
const MAX_PREPARED = 3;

/** Is also sent if a column or an index is missing. */
const SELECT_MIGRATION: StatementText = {
  ...nameStatement('select name from kysely_migration where name = $1'),
  summary: 'SELECT kysely_migration',
  kind: 'readiness',
  isRead: true,
};

/** Maximum number of statements that wait, for each session of the pool. With more, the last ones would reach their time limit. */
const MAX_WAITING_PER_SESSION = 32;

export type SenderOptions = {
  readonly executors: Executors;
  /** Is called when PostgreSQL refused a write because it is read-only. */
  readonly onReadOnly: () => void;
  readonly spans?: DatabaseSpans | undefined;
  /** The migration that this version requires. While it has not run, a missing column or index is 503. */
  readonly latestMigration?: string | undefined;
};

/** Sends statements within the request's time limit. It alone repeats them after a lost session or a conflict. */
export class RetryingSender {
  readonly retried = { connection_lost: 0, deadlock: 0, serialization_failure: 0 };
  readonly engine: EngineProfile;
  readonly maxWaiting: number;
  readonly #settings: Settings['postgres'];
  readonly #options: SenderOptions;

  constructor(settings: Settings['postgres'], options: SenderOptions) {
    this.engine = engineProfile(settings);
    this.maxWaiting = settings.poolSize * MAX_WAITING_PER_SESSION;
    this.#settings = settings;
    this.#options = options;
  }

  /** @throws {Problem} service_unavailable_error if PostgreSQL does not respond in time; otherwise PostgreSQL's error */
  run(text: StatementText, values: readonly unknown[]): Promise<readonly Row[]> {
    const request = { text, values, deadline: this.#findDeadline() };
    return this.#send(text.kind, request).catch((fault) => this.#sendAgain(fault, request));
  }

  /** Whether the migration that this version requires has run. */
  async isMigrated(): Promise<boolean> {
    try {
      return (await this.run(SELECT_MIGRATION, [this.#options.latestMigration])).length > 0;
    } catch (fault) {
      // Before the first migration, the record of migrations does not exist either.
      if (isMissingTable(fault)) return false;
      throw fault;
    }
  }

  /** Milliseconds that the statements of the current request have left. Its time begins with its first statement. */
  remainingTime(): number {
    return this.#findDeadline() - performance.now();
  }

  #send(name: keyof Executors, request: StatementRequest): Promise<readonly Row[]> {
    const { executors, spans } = this.#options;
    const executor = executors[name];
    if (request.deadline <= performance.now()) return Promise.reject(timeLimitReached());
    if (executor.waitingCount >= this.maxWaiting)
      return Promise.reject(unavailable('too many requests wait for a connection'));
    return spans ? spans.within(request.text, () => executor.send(request)) : executor.send(request);
  }

  /** Repeats the statement while that may help. @throws the problem for the last fault */
  async #sendAgain(first: unknown, request: StatementRequest): Promise<readonly Row[]> {
    const { text, deadline } = request;
    let [fault, attempts, prepared] = [first, 1, 0];
    let name: keyof Executors = text.kind;
    let isMigrated = false;
    for (;;) {
      if (isStalePlan(fault) && prepared < MAX_PREPARED) prepared += 1;
      // Other statements wait behind it in this session, so it moves to one for waits.
      else if (name !== 'own-session' && name !== 'lock-waiters' && isLockTimeout(fault))
        name = 'lock-waiters';
      else if (isUnmigrated(fault) && this.#options.latestMigration !== undefined && !isMigrated) {
        isMigrated = await this.isMigrated();
        if (!isMigrated) throw unavailable('the migrations have not run yet', fault);
      } else {
        if (isReadOnly(fault)) this.#options.onReadOnly();
        const isLost = text.isRead && attempts === 1 && hasLostSession(fault);
        const reason = isLost ? 'connection_lost' : classifyConflict(fault);
        // It is random, so that conflicting statements do not meet again.
        const pause =
          Math.random() * (isLost ? 0 : Math.min(FIRST_PAUSE_MS * 2 ** (attempts - 1), MAX_PAUSE_MS));
        if (!reason || performance.now() + pause >= deadline) throw translateFault(fault, this.engine);
        attempts += 1;
        this.retried[reason] += 1;
        if (pause > 0) await sleep(pause);
      }
      try {
        return await this.#send(name, request);
      } catch (again) {
        // A statement that was not sent again, or got no response, fails because of the lock that it waited for.
        if (!(again instanceof Problem && isLockTimeout(fault))) fault = again;
      }
    }
  }

  #findDeadline(): number {
    const request = currentRequest();
    const deadline = performance.now() + this.#settings.statementTimeout * 1000 + GRACE_MS;
    if (!request) return deadline;
    request.statementsUntil ??= Math.min(deadline, request.answeredBy);
    return request.statementsUntil;
  }
}
