import { setTimeout as sleep } from 'node:timers/promises';
import { ChurningSet } from '../../churning-set.ts';
import { unavailable } from '../../http/problem.ts';
import { readMessage } from '../../observability/redaction.ts';
import type { Settings } from '../../settings/settings.ts';
import { SESSION, type SessionParameters } from '../hosts/connection-config.ts';
import type { Hosts } from '../hosts/hosts.ts';
import { HostChanged, type Session } from '../hosts/session.ts';
import {
  type Executor,
  maxWaitingStatements,
  PendingStatement,
  refusals,
  type StatementText,
} from './executor.ts';
import { Pipeline } from './pipeline.ts';
import type { Row } from './rows.ts';

type SessionExecutorOptions = {
  readonly maxSessions: number;
  /** Maximum number of statements in progress in a session. With 1, each statement has its session to itself. */
  readonly depth: number;
  /** The executors of the instance, which lend each other sessions. The new one is added. */
  readonly peers: Set<SessionExecutor>;
};

class QueuedStatement extends PendingStatement {
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

const UPKEEP_MS = 250;

/** Interval at which the shutdown looks whether all sessions are closed. */
const CLOSING_POLL_MS = 10;

/** Milliseconds before the request's time limit at which PostgreSQL must refuse the wait. */
export const LOCK_GRACE_MS = 200;

/** In a shared session. A statement that waits longer moves to `LockWaiters`, because others wait behind it. */
const SHARED_LOCK_TIMEOUT = '20';

/**
 * Sends statements over sessions of its own, and over those of its peers if it gets none. With a depth above 1, statements
 * of different requests share a session. See "Connections" in ../README.md.
 */
export class SessionExecutor implements Executor {
  readonly #settings: Settings['postgres'];
  readonly #hosts: Hosts;
  readonly #options: SessionExecutorOptions;
  readonly #parameters: SessionParameters;
  readonly #pipelines = new Set<Pipeline>();
  #queue = new ChurningSet<QueuedStatement>();
  #opening = 0;
  /** When a statement was queued that waits for a session of a peer: infinite if it would take the last one from reads. */
  #waitsSince: number | undefined;
  #upkeep: NodeJS.Timeout | undefined;
  /** Creates the refusal of further statements during the shutdown. */
  #refuse: (() => Error) | undefined;

  constructor(settings: Settings['postgres'], hosts: Hosts, options: SessionExecutorOptions) {
    this.#settings = settings;
    this.#hosts = hosts;
    this.#options = options;
    this.#parameters = {
      ...SESSION,
      statement_timeout: String(Math.trunc(settings.statementTimeout * 1000)),
      ...(options.depth > 1 && { lock_timeout: SHARED_LOCK_TIMEOUT }),
    };
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
      return Promise.reject(refusals.noFreeConnection());
    }
    statement.limitTime(this.#settings.poolTimeout, () => this.#onExpiry(statement));
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

  /** Whether a session of this executor or of a peer has responded within so many milliseconds. */
  hasResponded(milliseconds: number): boolean {
    const since = Date.now() - milliseconds;
    for (const { isBroken, respondedAt } of pipelinesOf(this.#options.peers))
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
    this.#refuse ??= refusals.connectionsClosed;
    for (const pipeline of this.#pipelines)
      if (pipeline.length === 0 || pipeline.isStuck) this.#drop(pipeline);
    while (this.#refuse !== refusals.cancelledByShutdown && this.#pipelines.size + this.#opening > 0)
      await sleep(CLOSING_POLL_MS);
  }

  #sendQueued(): void {
    this.#waitsSince = undefined;
    let isWriteWaiting = false;
    for (const statement of this.#queue) {
      const { isRead } = statement.text;
      if (isWriteWaiting && !isRead) continue;
      const own = this.#findOwn(statement);
      const pipeline = own ?? this.#borrow(statement);
      if (pipeline) this.#sendOver(pipeline, statement, own !== undefined);
      else if (isRead) return;
      else isWriteWaiting = true;
    }
  }

  #sendOver(pipeline: Pipeline, statement: QueuedStatement, isOwn: boolean): void {
    const limit = this.#options.depth === 1 ? findLockTimeout(statement) : undefined;
    this.#queue.delete(statement);
    statement.isSent = true;
    statement.sentTo = pipeline;
    try {
      pipeline.send(statement, isOwn ? limit : (limit ?? this.#parameters.lock_timeout ?? '0'));
      pipeline.isLent = !isOwn;
    } catch (fault) {
      // A defect of one statement. Others of the queue may be sent after a response, where a throw would end the process.
      statement.reject(fault);
    }
  }

  /** Statements share a session only if no further one may be opened, and no peer has waited longer for one. */
  #findOwn({ text, queuedAt }: QueuedStatement): Pipeline | undefined {
    const { depth, maxSessions, peers } = this.#options;
    const found = this.#findLeastBusy();
    if (found?.length === 0 && this.#mayUse(this, text)) return found;
    this.#openAnother();
    if (!found || found.length === 0 || found.length >= depth) return undefined;
    if (this.#count < maxSessions && !this.#hosts.refusesSessions) return undefined;
    for (const peer of peers) if ((peer.#waitsSince ?? queuedAt) < queuedAt) return undefined;
    return found;
  }

  /** An idle session of a peer, if this executor has none for the statement, and PostgreSQL refuses further ones. */
  #borrow({ text, queuedAt }: QueuedStatement): Pipeline | undefined {
    if (!this.#hosts.hasRefused) return undefined;
    for (const pipeline of this.#pipelines)
      if (text.isRead ? pipeline.isUsable && !pipeline.isWriting : !pipeline.isLent) return undefined;
    this.#waitsSince ??= queuedAt;
    for (const peer of [...this.#options.peers].reverse()) {
      const found = peer.#findLeastBusy();
      if (found?.length === 0 && this.#mayUse(peer, text)) return found;
    }
    return undefined;
  }

  /**
   * Whether a statement may take an idle session of this executor. Writes leave one to reads, which may be of the same
   * executor, unless there is only one.
   */
  #mayUse(owner: SessionExecutor, { isRead }: StatementText): boolean {
    if (isRead) return true;
    if (owner.#options.depth === 1 && !leavesOne([owner])) return false;
    if (leavesOne(this.#options.peers)) return true;
    this.#waitsSince = Number.POSITIVE_INFINITY;
    return false;
  }

  #findLeastBusy(): Pipeline | undefined {
    let found: Pipeline | undefined;
    for (const pipeline of this.#pipelines) {
      if (pipeline.length === 0 && (pipeline.isBroken || this.#isStale(pipeline))) this.#drop(pipeline);
      else if (pipeline.isUsable && (!found || pipeline.length < found.length)) found = pipeline;
      if (found?.length === 0) break;
    }
    return found;
  }

  /** Number of sessions at the host in use, also of those that PostgreSQL has not closed yet. */
  get #count(): number {
    let count = 0;
    for (const { session } of this.#pipelines) if (session.at === this.#hosts.inUse) count += 1;
    return count;
  }

  /** Whether each session that a write may take waits for the end of a statement that was given up. */
  #isHopeless(): boolean {
    const count = this.#count;
    if (count < this.#options.maxSessions && !this.#hosts.hasRefused) return false;
    let [stuck, left] = [0, 0];
    for (const { isStuck, isBroken } of count === 0 ? pipelinesOf(this.#options.peers) : this.#pipelines) {
      if (!isBroken && isStuck) stuck += 1;
      else if (!isBroken) left += 1;
    }
    return stuck > 0 && left <= (count > 0 && this.#options.depth > 1 ? 0 : 1);
  }

  get #hasWorking(): boolean {
    for (const pipeline of pipelinesOf(this.#options.peers)) if (isWorking(pipeline)) return true;
    return false;
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
      this.#add(await this.#hosts.openSession(this.#parameters));
    } catch (fault) {
      this.#onRefusal(fault, begun);
    } finally {
      this.#opening -= 1;
    }
    this.#sendQueued();
  }

  #add(session: Session): void {
    const pipeline = new Pipeline(session, this.#settings, (answered) => this.#onResponse(answered));
    this.#pipelines.add(pipeline);
    session.once('end', () => this.#onEnd(pipeline));
    this.#upkeep ??= setInterval(() => this.#dropUnused(), UPKEEP_MS).unref();
    if (this.#refuse) this.#drop(pipeline);
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
  #onResponse(pipeline: Pipeline): void {
    if (pipeline.length === 0) {
      pipeline.isLent = false;
      if (pipeline.isBroken || this.#refuse) this.#drop(pipeline);
    }
    if (pipeline.endedIdle) for (const peer of this.#options.peers) peer.#dropIdleSince(pipeline.respondedAt);
    this.#sendNext();
  }

  /** The statements that have waited longest are sent first. */
  #sendNext(): void {
    let areOthers = false;
    for (const peer of this.#options.peers) areOthers ||= peer !== this && peer.#waitsSince !== undefined;
    if (!areOthers) {
      if (this.#queue.size > 0) this.#sendQueued();
      return;
    }
    const waiting = [...this.#options.peers].filter(({ waitingCount }) => waitingCount > 0);
    for (const peer of waiting.sort((one, other) => one.#oldest - other.#oldest)) peer.#sendQueued();
  }

  get #oldest(): number {
    for (const { queuedAt } of this.#queue) return queuedAt;
    return Number.POSITIVE_INFINITY;
  }

  /** PostgreSQL has ended the session, or its connection is lost. */
  #onEnd(pipeline: Pipeline): void {
    this.#pipelines.delete(pipeline);
    if (this.#pipelines.size === 0) this.#upkeep = void clearInterval(this.#upkeep);
    this.#sendNext();
  }

  #onExpiry(statement: QueuedStatement): void {
    this.#queue.delete(statement);
    statement.sentTo?.giveUp(statement);
  }

  /** It counts until PostgreSQL has ended it. */
  #drop(pipeline: Pipeline): void {
    if (pipeline.isClosing) return;
    pipeline.isClosing = true;
    pipeline.isBroken = true;
    void pipeline.session.endInTime();
  }

  #dropIdleSince(time: number): void {
    for (const pipeline of this.#pipelines)
      if (pipeline.length === 0 && pipeline.respondedAt <= time) this.#drop(pipeline);
  }

  #dropUnused(): void {
    for (const pipeline of this.#pipelines) {
      const isOld = Date.now() - pipeline.openedAt > MAX_AGE_MS && !this.#hosts.hasRefused;
      if (pipeline.length === 0 && (isOld || this.#isStale(pipeline))) this.#drop(pipeline);
    }
  }

  /** While PostgreSQL refuses sessions, those that there are stay open. */
  #isStale({ respondedAt }: Pipeline): boolean {
    return Date.now() - respondedAt > MAX_IDLE_MS && !this.#hosts.hasRefused;
  }

  /** Whether a write leaves one of the sessions of these executors, if it takes one. */
  static leavesOne(executors: Iterable<SessionExecutor>): boolean {
    let [sessions, left] = [0, 0];
    for (const executor of executors) {
      const count = executor.#count;
      sessions += count;
      if (count < executor.#options.maxSessions && !executor.#hosts.hasRefused) left += 1;
      for (const pipeline of executor.#pipelines) if (isWorking(pipeline) && !pipeline.isWriting) left += 1;
    }
    return sessions === 1 || left > 1;
  }

  static *pipelinesOf(executors: Iterable<SessionExecutor>): Iterable<Pipeline> {
    for (const executor of executors) yield* executor.#pipelines;
  }
}

const { leavesOne, pipelinesOf } = SessionExecutor;

/** Whether it takes statements, if not now then after a response. */
function isWorking({ isBroken, isStuck }: Pipeline): boolean {
  return !isBroken && !isStuck;
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
