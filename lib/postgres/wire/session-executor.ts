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

/** Milliseconds after the statement timeout within which PostgreSQL's response must arrive. */
const RESPONSE_GRACE_MS = 100;

/** Milliseconds before the request's time limit at which PostgreSQL must refuse the wait. */
export const LOCK_GRACE_MS = 200;

/** In a shared session. A statement that waits longer moves to `LockWaiters`, because others wait behind it. */
const SHARED_LOCK_TIMEOUT_MS = 20;

/** Sends statements over sessions of its own. With a depth above 1, statements of different requests share a session. */
export class SessionExecutor implements Executor {
  readonly #settings: Settings['postgres'];
  readonly #hosts: Hosts;
  readonly #options: SessionExecutorOptions;
  readonly #parameters: SessionParameters;
  readonly #pipelines = new Set<Pipeline>();
  #queue = new ChurningSet<QueuedStatement>();
  #opening = 0;
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
      ...(options.depth > 1 && { lock_timeout: String(SHARED_LOCK_TIMEOUT_MS) }),
    };
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

  cancel(): void {
    this.#refuse = refusals.cancelledByShutdown;
    for (const statement of this.#queue) statement.reject(refusals.cancelledByShutdown());
    this.#queue = new ChurningSet();
    for (const pipeline of this.#pipelines) pipeline.abandon();
  }

  /** Refuses further statements. Resolves when those in progress have responses and all sessions are closed. */
  async close(): Promise<void> {
    this.#refuse ??= refusals.connectionsClosed;
    for (const pipeline of this.#pipelines) if (pipeline.length === 0) this.#drop(pipeline);
    while (this.#refuse !== refusals.cancelledByShutdown && this.#pipelines.size + this.#opening > 0)
      await sleep(CLOSING_POLL_MS);
  }

  #sendQueued(): void {
    for (const statement of this.#queue) {
      const pipeline = this.#findLeastBusy();
      if (!pipeline || pipeline.length > 0) this.#openAnother();
      if (!pipeline || pipeline.length >= this.#options.depth) return;
      this.#queue.delete(statement);
      statement.isSent = true;
      statement.sentTo = pipeline;
      pipeline.send(statement, this.#options.depth === 1 ? findLockTimeout(statement) : undefined);
    }
  }

  #findLeastBusy(): Pipeline | undefined {
    let found: Pipeline | undefined;
    for (const pipeline of this.#pipelines) {
      const { length, isBroken } = pipeline;
      if (length === 0 && (isBroken || wasIdleForLong(pipeline))) this.#drop(pipeline);
      else if (!isBroken && (!found || length < found.length)) found = pipeline;
      if (found?.length === 0) break;
    }
    return found;
  }

  /** Opens a session for each statement that waits, up to the maximum, or until the host refuses further sessions. */
  #openAnother(): void {
    const count = this.#pipelines.size;
    if (this.#opening > 0 && this.#opening >= this.#queue.size) return;
    if (this.#refuse || count + this.#opening >= this.#options.maxSessions) return;
    if (count > 0 && this.#hosts.refusesSessions) return;
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
    const areNamed = this.#settings.pooler === 'none';
    const pipeline = new Pipeline(session, areNamed, (answered) => this.#onResponse(answered));
    this.#pipelines.add(pipeline);
    this.#upkeep ??= setInterval(() => this.#dropUnused(), UPKEEP_MS).unref();
    if (this.#refuse) this.#drop(pipeline);
  }

  /** If there are other sessions, statements wait for them. Otherwise the statements that waited for this one fail. */
  #onRefusal(fault: unknown, begun: number): void {
    if (this.#pipelines.size > 0 || fault instanceof HostChanged) return;
    const reason = `no connection: ${readMessage(fault)}`;
    for (const statement of this.#queue) {
      if (statement.queuedAt > begun) continue;
      this.#queue.delete(statement);
      statement.reject(unavailable(reason, fault));
    }
  }

  /** The session may take a waiting statement, or may no longer be needed. */
  #onResponse(pipeline: Pipeline): void {
    if (pipeline.length === 0 && (pipeline.isBroken || this.#refuse)) this.#drop(pipeline);
    if (this.#queue.size > 0) this.#sendQueued();
  }

  #onExpiry(statement: QueuedStatement): void {
    const { sentTo } = statement;
    this.#queue.delete(statement);
    const maxSilence = this.#settings.statementTimeout * 1000 + RESPONSE_GRACE_MS;
    const isSilent = sentTo && Date.now() - sentTo.usedAt > maxSilence;
    // A session of one statement would return the late response to the next statement.
    if (isSilent || this.#options.depth === 1) sentTo?.abandon('no response within the time limit');
  }

  #drop(pipeline: Pipeline): void {
    if (!this.#pipelines.delete(pipeline)) return;
    pipeline.isBroken = true;
    void pipeline.session.end().catch(() => {});
    if (this.#pipelines.size === 0) this.#upkeep = void clearInterval(this.#upkeep);
  }

  #dropUnused(): void {
    for (const pipeline of this.#pipelines) {
      const isOld = Date.now() - pipeline.openedAt > MAX_AGE_MS;
      if (pipeline.length === 0 && (isOld || wasIdleForLong(pipeline))) this.#drop(pipeline);
    }
  }
}

function wasIdleForLong({ usedAt }: Pipeline): boolean {
  return Date.now() - usedAt > MAX_IDLE_MS;
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
