import type { EventLog } from '../../lib/observability/event-log.ts';
import type { Database, StatementKind } from '../../lib/postgres/index.ts';
import type { RequestsInFlight } from '../requests-in-flight.ts';
import { isDisconnected } from '../sockets/connections.ts';
import { AdmissionPace, MemoryIntensiveLimit } from './limits.ts';
import { RefusalCounts, type RefusalReason } from './refusals.ts';
import { type QueuedRequest, Turns } from './turns.ts';

/** While so many requests are served, further ones are queued. This number keeps the process and PostgreSQL busy. */
const MAX_SERVED = 64;

/**
 * Number of queued requests that are admitted in one pass of the event loop, however many are served. The event loop
 * then returns to probes and responses. If PostgreSQL is far away or slow, passes are short, and more requests are served.
 */
const MIN_PER_PASS = 16;

/**
 * Node accepts one connection in each pass of the event loop. While it accepts, so many passes in a row admit nothing and
 * are short. Otherwise connections wait for longer than their clients do, and the clients connect again. When 2,000 were
 * opened, an instance accepted 340 in a second, lost 1,000, and answered `/health` after 5 to 8 seconds, now 0.6 to 1.6.
 */
const MAX_PASSES_TO_ACCEPT = 8;

/** A request that was queued for longer is refused, because callers commonly give up after a second. */
const MAX_WAIT_MS = 850;

const PERIOD_MS = 100;

type Executor = Database['executors'][StatementKind];

type AdmissionsOptions = {
  readonly database: Pick<Database, 'executors' | 'isCrowded'>;
  readonly inFlight: AdmissionOptions['inFlight'];
  readonly log: Pick<EventLog, 'warning'>;
};

/**
 * The admissions of one instance: one for each executor of statements, and one for memory-intensive requests. While an
 * executor is crowded, only the requests that need it are queued or refused. With one queue for all, 200 creates with a
 * key that waited for a lock left a thirtieth of the reads beside them.
 */
export class Admissions {
  readonly refusals: RefusalCounts;
  readonly #executors: Database['executors'];
  readonly #admissions = new Map<Executor | 'memory-intensive', Admission>();

  constructor({ database, inFlight, log }: AdmissionsOptions) {
    this.refusals = new RefusalCounts(log);
    this.#executors = database.executors;
    const create = (executor: Executor, isMemoryIntensive: boolean) => {
      const isCrowded = () => database.isCrowded(executor);
      return new Admission({ isCrowded, isMemoryIntensive, inFlight, refusals: this.refusals });
    };
    // Kinds of statements may share an executor.
    for (const executor of Object.values(this.#executors))
      this.#admissions.set(executor, create(executor, false));
    this.#admissions.set('memory-intensive', create(this.#executors.single, true));
  }

  /** The admission of requests whose first statement is of this kind. A memory-intensive request sends a `single` one. */
  for(kind: StatementKind, isMemoryIntensive: boolean): Admission {
    return this.#admissions.get(isMemoryIntensive ? 'memory-intensive' : this.#executors[kind]) as Admission;
  }

  /** Must be called for each new connection. */
  onConnection(): void {
    for (const admission of this.#admissions.values()) admission.onConnection();
  }

  /** Reads every paused connection. Must be called when the drain begins, which must know all requests that were sent. */
  resumeAll(): void {
    for (const admission of this.#admissions.values()) admission.resumeAll();
  }
}

type AdmissionOptions = {
  /** Whether further statements for its executor would only queue. */
  readonly isCrowded: () => boolean;
  /** Whether its requests need many times the memory of their bodies. */
  readonly isMemoryIntensive: boolean;
  readonly inFlight: Pick<RequestsInFlight, 'servedCount' | 'isDraining'>;
  readonly refusals: RefusalCounts;
};

/** Decides which requests for one executor, or which memory-intensive requests, are served, and when. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #turns = new Turns();
  readonly #pace = new AdmissionPace();
  readonly #limit: MemoryIntensiveLimit | undefined;
  #isPassScheduled = false;
  #hasAccepted = false;
  #passesToAccept = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.#limit = options.isMemoryIntensive
      ? new MemoryIntensiveLimit(() => this.#schedulePass())
      : undefined;
  }

  /** Whether a request is admitted at once. If so, the caller must serve it. */
  admits({ response }: QueuedRequest): boolean {
    const isQueued = this.#turns.queued > 0 || this.#options.inFlight.servedCount >= MAX_SERVED;
    if (isQueued || this.#isFull) return false;
    this.#limit?.begin(response);
    return true;
  }

  /** Queues a request until it can be served. Refuses it if it would be too late. */
  queue(request: QueuedRequest): void {
    this.#timer ??= setInterval(() => this.#supervise(), PERIOD_MS).unref();
    if (this.#turns.hasRoom(request, this.#pace.servableInTime)) this.#turns.add(request);
    else this.#respondOverloaded(request, 'no_room');
    this.#schedulePass();
  }

  /** Must be called after each response: its connection is not read at once while its caller has its share queued. */
  onAnswered(request: QueuedRequest): void {
    if (this.#turns.isPauseDue(request.caller)) this.#pauseAfter(request);
    this.#schedulePass();
  }

  /** Must be called for each new connection. */
  onConnection(): void {
    this.#hasAccepted = true;
  }

  /** Reads every connection that was paused. In a drain none is paused again. */
  resumeAll(): void {
    this.#turns.resumeAll();
  }

  get #isFull(): boolean {
    return this.#options.isCrowded() || this.#limit?.isFree === false;
  }

  #schedulePass(): void {
    if (this.#isPassScheduled || this.#turns.isEmpty) return;
    this.#isPassScheduled = true;
    setImmediate(() => this.#beginPass());
  }

  /** A pass of the event loop is left to new connections, or admits requests. */
  #beginPass(): void {
    const isLeft = this.#hasAccepted && this.#passesToAccept < MAX_PASSES_TO_ACCEPT;
    this.#passesToAccept = isLeft ? this.#passesToAccept + 1 : 0;
    this.#hasAccepted = false;
    this.#isPassScheduled = false;
    if (isLeft) this.#schedulePass();
    else this.#admitInTurns();
  }

  /**
   * Admits requests, each of the next caller, first in, first out. Newest first would refuse the older requests, or let
   * their callers give up, after a long wait.
   */
  #admitInTurns(): void {
    const limit = Math.max(MIN_PER_PASS, MAX_SERVED - this.#options.inFlight.servedCount);
    let admitted = 0;
    for (; admitted < limit && !this.#isFull; admitted += 1) {
      const request = this.#turns.takeNext();
      if (!request) break;
      if (isDisconnected(request.response)) this.#respondOverloaded(request, 'caller_left');
      else {
        this.#limit?.begin(request.response);
        request.serve();
      }
    }
    this.#pace.count(admitted);
    const isReading = this.#turns.readAhead();
    // Otherwise the next response, or the timer, continues.
    if (isReading || (admitted > 0 && this.#turns.queued > 0)) this.#schedulePass();
  }

  /**
   * If there was no room, the connection is paused until its caller's turn, so that refusals do not use all CPU time.
   * After too long a wait it is not paused, because these refusals are few and its next request may need another executor.
   */
  #respondOverloaded(request: QueuedRequest, reason: RefusalReason): void {
    request.respondOverloaded();
    this.#options.refusals.add(reason, request.caller);
    if (reason === 'no_room') this.#pauseAfter(request);
  }

  /** Until the response is sent, Node itself continues to read the rest of the request. */
  #pauseAfter({ response, caller }: QueuedRequest): void {
    response.once('close', () => {
      // Without the timer nothing would read the connection again.
      if (!this.#timer || this.#options.inFlight.isDraining) return;
      this.#turns.for(caller).pause(response.req.socket);
      this.#schedulePass();
    });
  }

  #supervise(): void {
    const now = performance.now();
    this.#pace.measure(now);
    for (const late of this.#turns.takeAllBefore(now - MAX_WAIT_MS))
      this.#respondOverloaded(late, isDisconnected(late.response) ? 'caller_left' : 'waited_too_long');
    this.#turns.resumeLate();
    this.#schedulePass();
    if (!this.#turns.isEmpty) return;
    // Nothing is left to do until a request is queued again.
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#pace.reset();
  }
}
