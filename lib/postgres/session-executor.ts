import { setTimeout as sleep } from 'node:timers/promises';
import { ChurningSet } from '../churning-set.ts';
import { unavailable } from '../http/problem.ts';
import { readMessage } from '../observability/redaction.ts';
import type { Settings } from '../settings/settings.ts';
import {
  type Executor,
  HostChanged,
  PendingStatement,
  Pipeline,
  type PostgresHosts,
  type Row,
  refusals,
  SESSION,
  type Session,
} from './sessions/index.ts';

type SessionExecutorOptions = {
  readonly maxSessions: number;
  /** Maximum number of statements in progress in a session. */
  readonly depth: number;
  /** The executors of the instance. The new one is added. */
  readonly peers: Set<SessionExecutor>;
};

/** While AWS Lambda freezes the process no timer runs, and the connection of an idle session may be lost. */
const MAX_IDLE_MS = 60_000;

/** An older session is replaced, so that sessions spread over new servers behind a load balancer. */
const MAX_AGE_MS = 1_800_000;

const UPKEEP_MS = 250;
const CLOSING_POLL_MS = 10;

/** Milliseconds before the request's time limit at which PostgreSQL must refuse the wait. */
export const LOCK_GRACE_MS = 200;

/** In a shared session. A statement that waits longer moves to `LockWaiters`, because others wait behind it. */
const SHARED_LOCK_TIMEOUT_MS = '20';

class QueuedStatement extends PendingStatement {
  sentOver: Pipeline | undefined;
}

class PooledPipeline extends Pipeline {
  readonly openedAt = Date.now();
  /** The executor of the statements in progress. */
  usedBy: SessionExecutor | undefined;
  isClosing = false;
}

/** Sends statements over sessions of its own, or over idle ones of its peers: see "Sessions" in README.md. */
export class SessionExecutor implements Executor {
  readonly #settings: Settings['postgres'];
  readonly #hosts: PostgresHosts;
  readonly #options: SessionExecutorOptions;
  readonly #lockTimeout: string | undefined;
  readonly #pipelines = new Set<PooledPipeline>();
  #queue = new ChurningSet<QueuedStatement>();
  #opening = 0;
  /** Creates the refusal of further statements during the shutdown. */
  #refuse: (() => Error) | undefined;

  constructor(settings: Settings['postgres'], hosts: PostgresHosts, options: SessionExecutorOptions) {
    this.#settings = settings;
    this.#hosts = hosts;
    this.#options = options;
    this.#lockTimeout = options.depth > 1 ? SHARED_LOCK_TIMEOUT_MS : undefined;
    options.peers.add(this);
    hosts.onRefusal = () => this.#sendNext();
  }

  send(...given: Parameters<Executor['send']>): Promise<readonly Row[]> {
    const [text, , deadline] = given;
    if (this.#refuse) return Promise.reject(this.#refuse());
    if (deadline <= performance.now()) return Promise.reject(refusals.timeLimitReached());
    const statement = new QueuedStatement(...given);
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

  /** `used` are in use or being opened. */
  get sessions(): { readonly idle: number; readonly used: number } {
    const idle = [...this.#pipelines].filter(({ length }) => length === 0).length;
    return { idle, used: this.#pipelines.size - idle + this.#opening };
  }

  /** Whether a session has responded within so many milliseconds. */
  hasResponded(milliseconds: number): boolean {
    const since = Date.now() - milliseconds;
    return [...this.#pipelines].some(({ isBroken, respondedAt }) => !isBroken && respondedAt >= since);
  }

  cancel(): void {
    this.#refuse = refusals.cancelledByShutdown;
    for (const statement of this.#queue) statement.reject(refusals.cancelledByShutdown());
    this.#queue = new ChurningSet();
    for (const { session } of this.#pipelines) session.abandon();
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
      const pipeline = isWriteWaiting && !isRead ? undefined : this.#findSession(isRead);
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
      const isBetter = isUsable && length < (found?.length ?? depth) && (length === 0 || usedBy === this);
      if (isBetter && !this.#closeIfUnused(pipeline)) found = pipeline;
      if (found?.length === 0) break;
    }
    const isIdle = found?.length === 0;
    if (isIdle && (isRead || this.#leavesOne())) return found;
    this.#openAnother();
    return isIdle || this.#mayOpen ? undefined : found;
  }

  /** While PostgreSQL refuses further sessions, no statement is added to a busy one if another executor waits for it. */
  get #depth(): number {
    const { depth, peers } = this.#options;
    if (this.#hosts.refusesSessions)
      for (const peer of peers) if (peer !== this && peer.#queue.size > 0) return 1;
    return depth;
  }

  /** Number of its sessions that writes leave to reads. */
  get #reserved(): number {
    return this.#hosts.refusesSessions || this.#options.depth === 1 ? 1 : 0;
  }

  /** Those of all peers, if PostgreSQL refuses further ones; for a read, also if none of its executor can be used. */
  #pipelinesFor(isRead: boolean): Iterable<PooledPipeline> {
    const isOut = isRead && this.#pipelines.size > 0 && countPipelines(this.#pipelines).working === 0;
    return isOut || this.#hosts.refusesSessions ? this.#allPipelines() : this.#pipelines;
  }

  *#allPipelines(): Iterable<PooledPipeline> {
    for (const peer of this.#options.peers) yield* peer.#pipelines;
  }

  /** Number of further sessions. Those that PostgreSQL has not closed yet count; late ones, and those at other hosts, do not. */
  get #missing(): number {
    let count = 0;
    for (const { session } of this.#pipelines)
      if (session.at === this.#hosts.inUse && !session.isLate) count += 1;
    return this.#options.maxSessions - count;
  }

  get #mayOpen(): boolean {
    return !this.#hosts.refusesSessions && this.#missing > 0;
  }

  /** Whether reads have another session if a write takes an idle one, or there is only one. */
  #leavesOne(): boolean {
    if (this.#mayOpen) return true;
    const { stuck, working, readable } = countPipelines(this.#pipelinesFor(false));
    return readable > this.#reserved || stuck + working === 1;
  }

  /** Whether each session that a write may take waits for the end of a statement that was given up. */
  #isHopeless(): boolean {
    if (this.#mayOpen) return false;
    const { stuck, working } = countPipelines(this.#pipelinesFor(false));
    return stuck > 0 && working <= this.#reserved;
  }

  /** Opens a session for each statement that waits, up to the maximum. `SessionAttempts` limits attempts while they fail. */
  #openAnother(): void {
    const isWanted = this.#opening === 0 || this.#opening < this.#queue.size;
    if (isWanted && !this.#refuse && this.#opening < this.#missing) void this.#open();
  }

  async #open(): Promise<void> {
    const begun = performance.now();
    this.#opening += 1;
    const parameters = {
      ...SESSION,
      statement_timeout: String(Math.trunc(this.#settings.statementTimeout * 1000)),
      ...(this.#lockTimeout && { lock_timeout: this.#lockTimeout }),
    };
    try {
      this.#add(await this.#hosts.openSession(parameters));
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
    const upkeep = setInterval(() => this.#closeIfUnused(pipeline), UPKEEP_MS).unref();
    session.once('end', () => {
      clearInterval(upkeep);
      this.#pipelines.delete(pipeline);
      this.#sendNext();
    });
    if (this.#refuse) closeSession(pipeline);
  }

  /** If there are other sessions, statements wait for them. Otherwise the statements that waited for this one fail. */
  #onRefusal(fault: unknown, begun: number): void {
    if (fault instanceof HostChanged || countPipelines(this.#allPipelines()).working > 0) return;
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
    if (this.#hosts.refusesSessions && pipeline.usedBy && peers.delete(pipeline.usedBy))
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

  /** Closes an idle session that was idle for too long, or is too old, unless PostgreSQL refuses another one. */
  #closeIfUnused(pipeline: PooledPipeline): boolean {
    if (pipeline.length > 0 || this.#hosts.refusesSessions) return false;
    const now = Date.now();
    if (now - pipeline.respondedAt <= MAX_IDLE_MS && now - pipeline.openedAt <= MAX_AGE_MS) return false;
    closeSession(pipeline);
    return true;
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

/** The limit of the waits for locks of a statement that has a session to itself, in milliseconds from now. */
function findLockTimeout({ deadline, text, options }: QueuedStatement): string | undefined {
  const { maxLockWait } = options;
  if (maxLockWait === undefined && !text.limitsLockWaits) return undefined;
  const left = deadline - performance.now() - LOCK_GRACE_MS;
  return String(Math.max(Math.floor(Math.min(left, maxLockWait ?? left)), 1));
}
