import type { ClientConfig } from 'pg';
import { ChurningSet } from '../../churning-set.ts';
import { unavailable } from '../../http/problem.ts';
import { HostChanged, type Hosts } from '../hosts/hosts.ts';
import type { Session } from '../hosts/session.ts';
import { computeLockTimeout, fillLockTimeout } from '../lock-timeout.ts';
import {
  cancelledByShutdown,
  connectionsClosed,
  type Executor,
  noFreeConnection,
  noResponse,
  timeLimitReached,
} from './executor.ts';
import { Pipeline, type StatementText, type ToSend } from './pipeline.ts';
import type { Row } from './rows.ts';
import { createTimeLimits } from './time-limits.ts';

type Options = {
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
  /** For how long a statement waits before it is sent, and how long PostgreSQL may be silent; in milliseconds. */
  readonly poolTimeLimit: number;
  readonly timeLimit: number;
};

/** A session, when it was opened and last used (`Date.now()`), and when its number of answers was last seen to change. */
type Open = {
  readonly session: Session;
  readonly pipeline: Pipeline;
  readonly openedAt: number;
  usedAt: number;
  answered: number;
  answeredAt: number;
};

/** A statement that is not answered yet; it is given up at `until` (`performance.now()`). */
type Waiting = ToSend & {
  values: readonly unknown[];
  until: number;
  readonly deadline: number;
  readonly queuedAt: number;
  readonly lockTimeLimit: number | undefined;
  readonly giveUp: () => void;
  sentTo: Open | undefined;
};

/**
 * In milliseconds. A session that was idle for longer is not used again: while AWS Lambda freezes the process no timer runs,
 * and its connection may be gone.
 */
const MAX_IDLE_MS = 60_000;

/** In milliseconds: an older session is replaced, so that sessions spread over new servers behind a balancer. */
const MAX_AGE_MS = 1_800_000;

/** In milliseconds: interval at which idle, old and silent sessions are closed. */
const UPKEEP_MS = 250;

const SET_LOCK_TIMEOUT = { sql: "select set_config('lock_timeout', $1, false)", name: 'set lock_timeout' };
const RESET_LOCK_TIMEOUT = { sql: 'reset lock_timeout', name: 'reset lock_timeout' };

/**
 * Sends statements over sessions of its own. With a depth above 1, statements of different requests share a session, one
 * behind the other: one that is given up costs its siblings nothing, because its answer is thrown away. With a depth of
 * 1, a session whose statement is given up is connectionsClosed, and PostgreSQL stops the statement.
 */
export class SessionExecutor implements Executor {
  readonly #config: ClientConfig;
  readonly #options: Options;
  readonly #open = new Set<Open>();
  readonly #queue = new ChurningSet<Waiting>();
  readonly #limits = createTimeLimits();
  #opening = 0;
  #upkeep: NodeJS.Timeout | undefined;
  /** Why no statement is taken any more. */
  #end: (() => Error) | undefined;
  readonly #closed = Promise.withResolvers<void>();

  /** Opens nothing yet. */
  constructor(config: ClientConfig, options: Options) {
    this.#config = config;
    this.#options = options;
  }

  /** As `Executor`; `lockTimeLimit` is for how many milliseconds at most the statement waits for a lock, with a depth of 1. */
  send(
    text: StatementText,
    values: readonly unknown[],
    deadline: number,
    lockTimeLimit?: number,
  ): Promise<readonly Row[]> {
    return new Promise((resolve, reject) => {
      const refusal = this.#refusalOf(deadline);
      if (refusal) return reject(refusal);
      const waiting: Waiting = {
        text,
        values,
        deadline,
        lockTimeLimit,
        queuedAt: performance.now(),
        until: deadline,
        sentTo: undefined,
        resolve: (rows) => {
          resolve(rows);
          this.#settle(waiting);
        },
        reject: (fault) => {
          reject(fault);
          this.#settle(waiting);
        },
        giveUp: () => this.#giveUp(waiting),
      };
      this.#limits.add(waiting);
      if (this.#queue.size === 0 && this.#isSent(waiting)) return;
      waiting.until = Math.min(deadline, performance.now() + this.#options.poolTimeLimit);
      this.#queue.add(waiting);
      this.#sendQueued();
    });
  }

  get waitingCount(): number {
    return this.#queue.size;
  }

  /** How many sessions are idle, and how many are not. */
  get sessions(): { readonly idle: number; readonly used: number } {
    let idle = 0;
    for (const { pipeline } of this.#open) if (pipeline.length === 0) idle += 1;
    return { idle, used: this.#open.size - idle + this.#opening };
  }

  cancel(): void {
    this.#end = cancelledByShutdown;
    for (const { reject } of this.#queue) reject(cancelledByShutdown());
    this.#queue.clear();
    for (const { pipeline } of this.#open) pipeline.abandon();
    this.#closed.resolve();
  }

  /** Takes no more statements. Resolves when those in progress are answered and all sessions are closed. */
  close(): Promise<void> {
    this.#end ??= connectionsClosed;
    for (const open of this.#open) if (open.pipeline.length === 0) this.#drop(open);
    this.#resolveIfClosed();
    return this.#closed.promise;
  }

  #refusalOf(deadline: number): Error | undefined {
    if (this.#end) return this.#end();
    if (deadline <= performance.now()) return timeLimitReached();
    const isFull = this.#queue.size >= this.#options.maxWaiting;
    return isFull ? unavailable('too many requests wait for a connection') : undefined;
  }

  #sendQueued(): void {
    for (const waiting of this.#queue) {
      if (!this.#isSent(waiting)) return;
      this.#queue.delete(waiting);
    }
  }

  #isSent(waiting: Waiting): boolean {
    const open = this.#leastBusy();
    if (!open || open.pipeline.length > 0) this.#openAnother();
    if (!open || open.pipeline.length >= this.#options.depth) return false;
    waiting.until = waiting.deadline;
    waiting.sentTo = open;
    if (this.#options.depth === 1) this.#sendAlone(waiting, open);
    else open.pipeline.send(waiting);
    return true;
  }

  #sendAlone(waiting: Waiting, open: Open): void {
    const { pipeline } = open;
    const left = Math.max(waiting.deadline - performance.now(), 1);
    waiting.values = fillLockTimeout(waiting.values, left);
    const { lockTimeLimit } = waiting;
    if (lockTimeLimit !== undefined)
      this.#change(open, SET_LOCK_TIMEOUT, [String(Math.min(lockTimeLimit, computeLockTimeout(left)))]);
    pipeline.send(waiting);
    if (lockTimeLimit !== undefined) this.#change(open, RESET_LOCK_TIMEOUT, []);
  }

  /** Changes the session in one write with the statement beside it. If that fails, the session is not used again. */
  #change(open: Open, text: StatementText, values: readonly string[]): void {
    const { pipeline } = open;
    const reject = () => {
      pipeline.isBroken = true;
      this.#onAnswer(open);
    };
    pipeline.send({ text, values, resolve: () => this.#onAnswer(open), reject });
  }

  #leastBusy(): Open | undefined {
    let found: Open | undefined;
    for (const open of this.#open) {
      const { pipeline, usedAt } = open;
      if (pipeline.length === 0 && (pipeline.isBroken || Date.now() - usedAt > MAX_IDLE_MS)) this.#drop(open);
      else if (!pipeline.isBroken && (!found || pipeline.length < found.pipeline.length)) found = open;
      if (found?.pipeline.length === 0) break;
    }
    return found;
  }

  /** One for each statement that waits, unless there are as many as may be, or the host refuses more than there are. */
  #openAnother(): void {
    const { hosts, maxSessions } = this.#options;
    const count = this.#open.size;
    if (this.#opening > 0 && this.#opening >= this.#queue.size) return;
    if (this.#end || count + this.#opening >= maxSessions || (count > 0 && hosts.refusesSessions)) return;
    this.#opening += 1;
    void this.#openSession();
  }

  async #openSession(): Promise<void> {
    const { hosts, watch, areNamed } = this.#options;
    const session = new hosts.Session(this.#config);
    const begun = performance.now();
    try {
      await session.connect();
    } catch (fault) {
      this.#opening -= 1;
      return this.#onRefusal(fault, begun);
    }
    this.#opening -= 1;
    const pipeline = new Pipeline(session, { areNamed });
    const now = Date.now();
    const open = {
      session,
      pipeline,
      openedAt: now,
      usedAt: now,
      answered: 0,
      answeredAt: performance.now(),
    };
    this.#open.add(open);
    session.on('error', () => this.#onAnswer(open));
    session.once('end', () => {
      this.#drop(open);
      this.#sendQueued();
    });
    this.#upkeep ??= setInterval(() => this.#keepUp(), UPKEEP_MS).unref();
    watch(session);
    if (this.#end) this.#drop(open);
    else this.#sendQueued();
  }

  /** Statements that wait share the sessions that there are. Without any, those from before the attempt wait in vain. */
  #onRefusal(fault: unknown, begun: number): void {
    this.#resolveIfClosed();
    if (this.#open.size > 0 || fault instanceof HostChanged) {
      this.#sendQueued();
      return;
    }
    // Whatever the reason, TLS and passwords included, nothing has been sent yet.
    const reason = `no connection: ${fault instanceof Error ? fault.message : fault}`;
    const inVain = [...this.#queue].filter(({ queuedAt }) => queuedAt <= begun);
    for (const waiting of inVain) this.#queue.delete(waiting);
    for (const { reject } of inVain) reject(unavailable(reason, fault));
    this.#sendQueued();
  }

  #settle(waiting: Waiting): void {
    this.#limits.delete(waiting);
    if (waiting.sentTo) this.#onAnswer(waiting.sentTo);
    else this.#sendQueued();
  }

  /** The session may be free for a statement that waits. */
  #onAnswer(open: Open): void {
    open.usedAt = Date.now();
    if (open.pipeline.length === 0 && (open.pipeline.isBroken || this.#end)) this.#drop(open);
    this.#sendQueued();
  }

  #giveUp(waiting: Waiting): void {
    const { sentTo, deadline, until } = waiting;
    if (!sentTo) {
      this.#queue.delete(waiting);
      waiting.reject(until === deadline ? timeLimitReached() : noFreeConnection());
      return;
    }
    // An exclusive session would hand the late answer to the next statement.
    if (this.#options.depth === 1) sentTo.pipeline.abandon();
    waiting.reject(noResponse());
  }

  #drop(open: Open): void {
    if (!this.#open.delete(open)) return;
    open.pipeline.isBroken = true;
    void open.session.end().catch(() => {});
    if (this.#open.size === 0) this.#upkeep = void clearInterval(this.#upkeep);
    this.#resolveIfClosed();
  }

  #resolveIfClosed(): void {
    if (this.#end && this.#open.size === 0 && this.#opening === 0) this.#closed.resolve();
  }

  #keepUp(): void {
    const [now, monotonic] = [Date.now(), performance.now()];
    for (const open of this.#open) {
      const { pipeline, openedAt, usedAt } = open;
      const isIdle = pipeline.length === 0;
      if (isIdle && (now - usedAt > MAX_IDLE_MS || now - openedAt > MAX_AGE_MS)) this.#drop(open);
      else if (isIdle || pipeline.answered !== open.answered) {
        open.answered = pipeline.answered;
        open.answeredAt = monotonic;
      } else if (monotonic - open.answeredAt > this.#options.timeLimit) pipeline.abandon();
    }
  }
}
