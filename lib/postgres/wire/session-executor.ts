import type { ClientConfig } from 'pg';
import { ChurningSet } from '../../churning-set.ts';
import { unavailable } from '../../http/problem.ts';
import { HostChanged, type Hosts } from '../hosts/hosts.ts';
import type { Session } from '../hosts/session.ts';
import { type Executor, PendingStatement, refusals, type StatementText } from './executor.ts';
import { Pipeline } from './pipeline.ts';
import type { Row } from './rows.ts';

type SessionExecutorOptions = {
  readonly hosts: Hosts;
  /** Called with each new session. */
  readonly watch: (session: Session) => void;
  /** Maximum number of sessions. */
  readonly maxSessions: number;
  /** Maximum number of statements in progress in a session. With 1, each statement has its session to itself. */
  readonly depth: number;
  /** Whether statements are prepared by name: not behind a pooler, where the next transaction has another session. */
  readonly areNamed: boolean;
  /** Maximum number of statements that wait to be sent. */
  readonly maxWaiting: number;
  /** For how long a statement waits to be sent, and for how long a session may be silent; in milliseconds. */
  readonly poolTimeLimit: number;
  readonly maxSilence: number;
};

/** A statement, and the session to which it was sent. */
class QueuedStatement extends PendingStatement {
  readonly queuedAt = performance.now();
  /** Maximum time of its wait for a lock, in milliseconds. */
  maxLockWait: number | undefined;
  sentTo: Pipeline | undefined;
}

/**
 * A session that was idle for longer is not used again. While AWS Lambda freezes the process no timer runs, and the
 * connection may be lost.
 */
const MAX_IDLE_MS = 60_000;

/** An older session is replaced, so that sessions spread over new servers behind a load balancer. */
const MAX_AGE_MS = 1_800_000;

/** Interval at which idle and old sessions are closed. */
const UPKEEP_MS = 250;

/**
 * As the value of a parameter: for how long the statement may wait for a lock, in milliseconds as text. It is known
 * only once the statement has its connection.
 */
export const LOCK_TIMEOUT_PARAMETER = Symbol('time left');

/** Milliseconds before the request's time limit at which PostgreSQL must refuse the wait. */
export const LOCK_GRACE_MS = 200;

const SET_LOCK_TIMEOUT = { sql: "select set_config('lock_timeout', $1, false)", name: 'set lock_timeout' };
const RESET_LOCK_TIMEOUT = { sql: 'reset lock_timeout', name: 'reset lock_timeout' };

/**
 * Sends statements over sessions of its own. With a depth above 1, statements of different requests share a session. If
 * one of them expires, its late response is discarded, and the others get theirs. With a depth of 1, the session of an
 * expired statement is closed, and PostgreSQL stops the statement.
 */
export class SessionExecutor implements Executor {
  readonly #config: ClientConfig;
  readonly #options: SessionExecutorOptions;
  readonly #pipelines = new Set<Pipeline>();
  readonly #queue = new ChurningSet<QueuedStatement>();
  #opening = 0;
  #upkeep: NodeJS.Timeout | undefined;
  /** Creates the refusal of further statements during the shutdown. */
  #refuse: (() => Error) | undefined;
  readonly #closed = Promise.withResolvers<void>();

  /** Opens nothing yet. */
  constructor(config: ClientConfig, options: SessionExecutorOptions) {
    this.#config = config;
    this.#options = options;
  }

  /** As `Executor`. With a depth of 1, `maxLockWait` limits the statement's wait for a lock, in milliseconds. */
  send(
    text: StatementText,
    values: readonly unknown[],
    deadline: number,
    maxLockWait?: number,
  ): Promise<readonly Row[]> {
    if (this.#refuse) return Promise.reject(this.#refuse());
    if (deadline <= performance.now()) return Promise.reject(refusals.timeLimitReached());
    if (this.#queue.size >= this.#options.maxWaiting) return Promise.reject(refusals.queueFull());
    const statement = new QueuedStatement(text, values, deadline);
    statement.maxLockWait = maxLockWait;
    if (this.#queue.size === 0) this.#trySend(statement);
    statement.limitTime(this.#options.poolTimeLimit, () => this.#onExpiry(statement));
    if (!statement.isSent) {
      this.#queue.add(statement);
      this.#sendQueued();
    }
    return statement.response;
  }

  get waitingCount(): number {
    return this.#queue.size;
  }

  /** Number of idle sessions, and of those that are in use or being opened. */
  get sessions(): { readonly idle: number; readonly used: number } {
    let idle = 0;
    for (const { length } of this.#pipelines) if (length === 0) idle += 1;
    return { idle, used: this.#pipelines.size - idle + this.#opening };
  }

  cancel(): void {
    this.#refuse = refusals.cancelledByShutdown;
    for (const statement of this.#queue) statement.reject(refusals.cancelledByShutdown());
    this.#queue.clear();
    for (const pipeline of this.#pipelines) pipeline.abandon();
    this.#closed.resolve();
  }

  /** Refuses further statements. Resolves when those in progress have responses and all sessions are closed. */
  close(): Promise<void> {
    this.#refuse ??= refusals.connectionsClosed;
    for (const pipeline of this.#pipelines) if (pipeline.length === 0) this.#drop(pipeline);
    this.#resolveIfClosed();
    return this.#closed.promise;
  }

  #sendQueued(): void {
    for (const statement of this.#queue) {
      this.#trySend(statement);
      if (!statement.isSent) return;
      this.#queue.delete(statement);
    }
  }

  #trySend(statement: QueuedStatement): void {
    const pipeline = this.#findLeastBusy();
    if (!pipeline || pipeline.length > 0) this.#openAnother();
    if (!pipeline || pipeline.length >= this.#options.depth) return;
    statement.isSent = true;
    statement.sentTo = pipeline;
    if (this.#options.depth === 1) sendAlone(statement, pipeline);
    else pipeline.send(statement);
  }

  #findLeastBusy(): Pipeline | undefined {
    let found: Pipeline | undefined;
    for (const pipeline of this.#pipelines) {
      const { length, isBroken, usedAt } = pipeline;
      if (length === 0 && (isBroken || Date.now() - usedAt > MAX_IDLE_MS)) this.#drop(pipeline);
      else if (!isBroken && (!found || length < found.length)) found = pipeline;
      if (found?.length === 0) break;
    }
    return found;
  }

  /** Opens a session for each statement that waits, up to the maximum, or until the host refuses further sessions. */
  #openAnother(): void {
    const { hosts, maxSessions } = this.#options;
    const count = this.#pipelines.size;
    if (this.#opening > 0 && this.#opening >= this.#queue.size) return;
    if (this.#refuse || count + this.#opening >= maxSessions || (count > 0 && hosts.refusesSessions)) return;
    this.#opening += 1;
    void this.#open();
  }

  async #open(): Promise<void> {
    const { hosts, watch, areNamed } = this.#options;
    const begun = performance.now();
    let session: Session;
    try {
      session = await hosts.openSession(this.#config);
    } catch (fault) {
      this.#opening -= 1;
      return this.#onRefusal(fault, begun);
    }
    this.#opening -= 1;
    const pipeline = new Pipeline(session, areNamed, (answered) => this.#onResponse(answered));
    this.#pipelines.add(pipeline);
    this.#upkeep ??= setInterval(() => this.#dropUnused(), UPKEEP_MS).unref();
    watch(session);
    this.#onResponse(pipeline);
  }

  /** If there are other sessions, statements wait for them. Otherwise the statements that waited for this one fail. */
  #onRefusal(fault: unknown, begun: number): void {
    this.#resolveIfClosed();
    if (this.#pipelines.size === 0 && !(fault instanceof HostChanged)) {
      const reason = `no connection: ${fault instanceof Error ? fault.message : fault}`;
      const failed = [...this.#queue].filter(({ queuedAt }) => queuedAt <= begun);
      for (const statement of failed) this.#queue.delete(statement);
      for (const statement of failed) statement.reject(unavailable(reason, fault));
    }
    this.#sendQueued();
  }

  /** The session may be free for a statement that waits, or done. */
  #onResponse(pipeline: Pipeline): void {
    if (pipeline.length === 0 && (pipeline.isBroken || this.#refuse)) this.#drop(pipeline);
    if (this.#queue.size > 0) this.#sendQueued();
  }

  #onExpiry(statement: QueuedStatement): void {
    const { sentTo } = statement;
    this.#queue.delete(statement);
    const isSilent = sentTo && Date.now() - sentTo.usedAt > this.#options.maxSilence;
    // A session of one statement would return the late response to the next statement.
    if (isSilent || this.#options.depth === 1) sentTo?.abandon();
  }

  #drop(pipeline: Pipeline): void {
    if (!this.#pipelines.delete(pipeline)) return;
    pipeline.isBroken = true;
    void pipeline.session.end().catch(() => {});
    if (this.#pipelines.size === 0) this.#upkeep = void clearInterval(this.#upkeep);
    this.#resolveIfClosed();
  }

  #resolveIfClosed(): void {
    if (this.#refuse && this.#pipelines.size === 0 && this.#opening === 0) this.#closed.resolve();
  }

  #dropUnused(): void {
    const now = Date.now();
    for (const pipeline of this.#pipelines) {
      const isUnused = now - pipeline.usedAt > MAX_IDLE_MS || now - pipeline.openedAt > MAX_AGE_MS;
      if (pipeline.length === 0 && isUnused) this.#drop(pipeline);
    }
  }
}

/** With the session to itself, the statement may limit its waits for locks, so that none lasts until the deadline. */
function sendAlone(statement: QueuedStatement, pipeline: Pipeline): void {
  const { deadline, values, maxLockWait } = statement;
  const left = deadline - performance.now() - LOCK_GRACE_MS;
  const lockTimeout = String(Math.max(Math.floor(Math.min(left, maxLockWait ?? left)), 1));
  if (values.includes(LOCK_TIMEOUT_PARAMETER))
    statement.values = values.map((value) => (value === LOCK_TIMEOUT_PARAMETER ? lockTimeout : value));
  if (maxLockWait !== undefined) changeSession(pipeline, SET_LOCK_TIMEOUT, [lockTimeout]);
  pipeline.send(statement);
  if (maxLockWait !== undefined) changeSession(pipeline, RESET_LOCK_TIMEOUT, []);
}

/** Changes the session in the write of the statement beside it. If that fails, the session is not used again. */
function changeSession(pipeline: Pipeline, text: StatementText, values: readonly string[]): void {
  const reject = () => {
    pipeline.isBroken = true;
  };
  pipeline.send({ text, values, resolve() {}, reject });
}
