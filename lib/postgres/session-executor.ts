import { setTimeout as sleep } from 'node:timers/promises';
import { ChurningSet } from '../churning-set.ts';
import { unavailable } from '../http/problem.ts';
import { readMessage } from '../observability/redaction.ts';
import type { Settings } from '../settings/settings.ts';
import {
  type Executor,
  HostChanged,
  maxWaitingStatements,
  PendingStatement,
  Pipeline,
  type PostgresHosts,
  type Row,
  refusals,
  SESSION,
  type Session,
  type StatementText,
} from './sessions/index.ts';

type SessionExecutorOptions = {
  readonly maxSessions: number;
  /** Maximum number of statements in progress in a session. With 1, each statement has its session to itself. */
  readonly depth: number;
  /** The executors of the instance. The new one is added. */
  readonly peers: Set<SessionExecutor>;
};

/**
 * A session that was idle for longer is not used again. While AWS Lambda freezes the process no timer runs, and the
 * connection may be lost.
 */
const MAX_IDLE_MS = 60_000;

/** An older session is replaced, so that sessions spread over new servers behind a load balancer. */
const MAX_AGE_MS = 1_800_000;

const UPKEEP_MS = 250;

/** Interval at which the shutdown looks whether all sessions are closed. */
const CLOSING_POLL_MS = 10;

/** Milliseconds before the request's time limit at which PostgreSQL must refuse the wait. */
export const LOCK_GRACE_MS = 200;

/** If statements share a session. One that waits longer moves to `LockWaiters`, because others wait behind it. */
const SHARED_LOCK_TIMEOUT_MS = '20';

class QueuedStatement extends PendingStatement {
  /** Maximum time of its wait for a lock, in milliseconds. */
  maxLockWait: number | undefined;
  sentOver: Pipeline | undefined;
}

class PooledPipeline extends Pipeline {
  readonly openedAt = Date.now();
  /** The executor of the statements in progress. */
  usedBy: SessionExecutor | undefined;
  isClosing = false;
}

/**
 * Sends statements over sessions of its own. With a depth above 1, statements of different requests share a session. While
 * PostgreSQL refuses further sessions, each idle session is for the statements of all peers. See "Sessions" in README.md.
 */
export class SessionExecutor implements Executor {
  readonly #settings: Settings['postgres'];
  readonly #hosts: PostgresHosts;
  readonly #options: SessionExecutorOptions;
  readonly #lockTimeout: string | undefined;
  readonly #pipelines = new Set<PooledPipeline>();
  #queue = new ChurningSet<QueuedStatement>();
  #opening = 0;
  #upkeep: NodeJS.Timeout | undefined;
  /** Creates the refusal of further statements during the shutdown. */
  #refuse: (() => Error) | undefined;

  constructor(settings: Settings['postgres'], hosts: PostgresHosts, options: SessionExecutorOptions) {
    this.#settings = settings;
    this.#hosts = hosts;
    this.#options = options;
    this.#lockTimeout = options.depth > 1 ? SHARED_LOCK_TIMEOUT_MS : undefined;
    options.peers.add(this);
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
    if (this.#queue.size >= maxWaitingStatements(this.#settings)) return Promise.reject(refusals.queueFull());
    const statement = new QueuedStatement(text, values, deadline);
    statement.maxLockWait = maxLockWait;
    this.#queue.add(statement);
    this.#sendQueued();
    if (!text.isRead && !statement.isSent && this.#isHopeless()) {
      this.#queue.delete(statement);
      return Promise.reject(refusals.noFreeSession());
    }
    statement.limitTime(this.#settings.poolTimeout, () => {
      this.#queue.delete(statement);
      statement.sentOver?.giveUp(statement);
    });
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

  /** Whether a session has responded within so many milliseconds. */
  hasResponded(milliseconds: number): boolean {
    const since = Date.now() - milliseconds;
    for (const { isBroken, respondedAt } of this.#pipelines)
      if (!isBroken && respondedAt >= since) return true;
    return false;
  }

  cancel(): void {
    this.#refuse = refusals.cancelledByShutdown;
    for (const statement of this.#queue) statement.reject(refusals.cancelledByShutdown());
    this.#queue = new ChurningSet();
    for (const pipeline of this.#pipelines) pipeline.abandon();
  }

  /** Refuses further statements. Resolves when those in progress have responses and all sessions are closed. */
  async close(): Promise<void> {
    this.#refuse ??= refusals.sessionsClosed;
    for (const pipeline of this.#pipelines)
      if (pipeline.length === 0 || pipeline.isStuck) closeSession(pipeline);
    while (this.#refuse !== refusals.cancelledByShutdown && this.#pipelines.size + this.#opening > 0)
      await sleep(CLOSING_POLL_MS);
  }

  #sendQueued(): void {
    let isWriteWaiting = false;
    for (const statement of this.#queue) {
      const { isRead } = statement.text;
      if (isWriteWaiting && !isRead) continue;
      const pipeline = this.#findSession(isRead);
      if (pipeline) this.#sendOver(pipeline, statement);
      else if (isRead) return;
      else isWriteWaiting = true;
    }
  }

  #sendOver(pipeline: PooledPipeline, statement: QueuedStatement): void {
    this.#queue.delete(statement);
    statement.isSent = true;
    statement.sentOver = pipeline;
    pipeline.usedBy = this;
    const limit = findLockTimeout(statement) ?? this.#lockTimeout;
    try {
      pipeline.send(statement, limit === pipeline.session.lockTimeout ? undefined : (limit ?? '0'));
    } catch (fault) {
      // A defect of one statement. Others of the queue may be sent after a response, where a throw would end the process.
      statement.reject(fault);
    }
  }

  /** An idle session, or a busy one of its own if no further one may be opened. */
  #findSession(isRead: boolean): PooledPipeline | undefined {
    const depth = this.#depth;
    let found: PooledPipeline | undefined;
    for (const pipeline of this.#pipelinesFor(isRead)) {
      const { length, isUsable, usedBy } = pipeline;
      if (length === 0 && (!isUsable || this.#isUnused(pipeline))) closeSession(pipeline);
      else if (isUsable && length < (found?.length ?? depth) && (length === 0 || usedBy === this))
        found = pipeline;
      if (found?.length === 0) break;
    }
    const isIdle = found?.length === 0;
    if (isIdle && (isRead || this.#leavesOne())) return found;
    this.#openAnother();
    return isIdle || this.#mayOpen ? undefined : found;
  }

  /** While PostgreSQL refuses further sessions, no statement is added to a busy one if another executor waits for it. */
  get #depth(): number {
    if (this.#hosts.hasRefused)
      for (const peer of this.#options.peers) if (peer !== this && peer.#queue.size > 0) return 1;
    return this.#options.depth;
  }

  /** Whether its sessions are also for reads. */
  get #servesReads(): boolean {
    return this.#hosts.hasRefused || this.#options.depth === 1;
  }

  /** Those of all peers, if PostgreSQL refuses further ones; for a read, also if none of its executor can be used. */
  #pipelinesFor(isRead: boolean): Iterable<PooledPipeline> {
    if (this.#hosts.hasRefused) return this.#allPipelines();
    for (const { isStuck } of this.#pipelines) if (!isRead || !isStuck) return this.#pipelines;
    return this.#pipelines.size > 0 ? this.#allPipelines() : this.#pipelines;
  }

  *#allPipelines(): Iterable<PooledPipeline> {
    for (const peer of this.#options.peers) yield* peer.#pipelines;
  }

  /** Number of sessions at the host in use, also of those that PostgreSQL has not closed yet. */
  get #count(): number {
    let count = 0;
    for (const { session } of this.#pipelines) if (session.at === this.#hosts.inUse) count += 1;
    return count;
  }

  get #mayOpen(): boolean {
    return !this.#hosts.hasRefused && this.#count < this.#options.maxSessions;
  }

  /** Whether reads have another session if a write takes an idle one, or there is only one. */
  #leavesOne(): boolean {
    if (!this.#servesReads || this.#mayOpen) return true;
    const { stuck, working, readable } = countPipelines(this.#pipelinesFor(false));
    return readable > 1 || stuck + working === 1;
  }

  /** Whether each session that a write may take waits for the end of a statement that was given up. */
  #isHopeless(): boolean {
    if (this.#mayOpen) return false;
    const { stuck, working } = countPipelines(this.#pipelinesFor(false));
    return stuck > 0 && working <= (this.#servesReads ? 1 : 0);
  }

  get #hasWorking(): boolean {
    return countPipelines(this.#allPipelines()).working > 0;
  }

  /** Opens a session for each statement that waits, up to the maximum, or until the host refuses further sessions. */
  #openAnother(): void {
    if (this.#opening > 0 && this.#opening >= this.#queue.size) return;
    if (this.#refuse || this.#count + this.#opening >= this.#options.maxSessions) return;
    if (this.#hosts.refusesSessions && this.#hasWorking) return;
    void this.#open();
  }

  async #open(): Promise<void> {
    const begun = performance.now();
    this.#opening += 1;
    try {
      this.#add(
        await this.#hosts.openSession({
          ...SESSION,
          statement_timeout: String(Math.trunc(this.#settings.statementTimeout * 1000)),
          ...(this.#lockTimeout && { lock_timeout: this.#lockTimeout }),
        }),
      );
    } catch (fault) {
      this.#onRefusal(fault, begun);
    } finally {
      this.#opening -= 1;
    }
    this.#sendNext();
  }

  #add(session: Session): void {
    const pipeline = new PooledPipeline(session, this.#settings, {
      onResponse: () => this.#onResponse(pipeline),
      onNotSent: (statements) => this.#onNotSent(pipeline, statements),
    });
    this.#pipelines.add(pipeline);
    session.once('end', () => {
      this.#pipelines.delete(pipeline);
      if (this.#pipelines.size === 0) this.#upkeep = void clearInterval(this.#upkeep);
      this.#sendNext();
    });
    this.#upkeep ??= setInterval(() => this.#closeUnused(), UPKEEP_MS).unref();
    if (this.#refuse) closeSession(pipeline);
  }

  /** If there are other sessions, statements wait for them. Otherwise the statements that waited for this one fail. */
  #onRefusal(fault: unknown, begun: number): void {
    if (fault instanceof HostChanged || this.#hasWorking) return;
    const reason = `no connection: ${readMessage(fault)}`;
    for (const statement of this.#queue) {
      if (statement.queuedAt > begun) continue;
      this.#queue.delete(statement);
      statement.reject(unavailable(reason, fault));
    }
  }

  /** The session may take a waiting statement, or may no longer be needed. */
  #onResponse(pipeline: PooledPipeline): void {
    if (pipeline.length === 0 && (pipeline.isBroken || this.#refuse)) closeSession(pipeline);
    const { peers } = this.#options;
    // The executor that used the session comes last, so that a few sessions serve all.
    if (this.#hosts.hasRefused && pipeline.usedBy && peers.delete(pipeline.usedBy))
      peers.add(pipeline.usedBy);
    this.#sendNext();
  }

  #sendNext(): void {
    for (const peer of this.#options.peers) if (peer.#queue.size > 0) peer.#sendQueued();
  }

  /** The session ended before these statements were sent. They are sent over another one, within their time limits. */
  #onNotSent(ended: PooledPipeline, statements: readonly PendingStatement[]): void {
    // Sessions that were idle for as long may have ended, too.
    if (ended.length === 0)
      for (const pipeline of this.#allPipelines())
        if (pipeline.length === 0 && pipeline.respondedAt <= ended.respondedAt) closeSession(pipeline);
    const { usedBy: executor = this } = ended;
    for (const statement of statements) {
      statement.isSent = false;
      if (this.#refuse) statement.reject(this.#refuse());
      else if (!statement.isGivenUp) executor.#queue.add(statement as QueuedStatement);
    }
  }

  #closeUnused(): void {
    for (const pipeline of this.#pipelines)
      if (pipeline.length === 0 && this.#isUnused(pipeline)) closeSession(pipeline);
  }

  /** While PostgreSQL refuses sessions, those that there are stay open. */
  #isUnused({ respondedAt, openedAt }: PooledPipeline): boolean {
    const now = Date.now();
    return !this.#hosts.hasRefused && (now - respondedAt > MAX_IDLE_MS || now - openedAt > MAX_AGE_MS);
  }
}

/** Numbers of sessions: `stuck` wait for the end of a statement that was given up, and `readable` do not write. */
function countPipelines(pipelines: Iterable<Pipeline>) {
  const counts = { stuck: 0, working: 0, readable: 0 };
  for (const { isBroken, isStuck, isWriting } of pipelines) {
    if (isBroken) continue;
    counts[isStuck ? 'stuck' : 'working'] += 1;
    if (!isStuck && !isWriting) counts.readable += 1;
  }
  return counts;
}

/** A session counts until PostgreSQL has ended it. */
function closeSession(pipeline: PooledPipeline): void {
  if (pipeline.isClosing) return;
  pipeline.isClosing = true;
  pipeline.isBroken = true;
  void pipeline.session.endInTime();
}

/**
 * The limit of a statement's waits for locks, in milliseconds: known only once it has its session. It must have the session
 * to itself, because a shared one has a limit for all.
 */
function findLockTimeout({ deadline, text, maxLockWait }: QueuedStatement): string | undefined {
  if (maxLockWait === undefined && !text.limitsLockWaits) return undefined;
  const left = deadline - performance.now() - LOCK_GRACE_MS;
  return String(Math.max(Math.floor(Math.min(left, maxLockWait ?? left)), 1));
}
