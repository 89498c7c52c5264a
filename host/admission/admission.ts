import type { ServerResponse } from 'node:http';
import type { EventLog } from '../../lib/observability/event-log.ts';
import { AdmissionQueue } from './admission-queue.ts';
import { PausedSockets, ResumePolicy } from './paused-sockets.ts';
import { RefusalBudget, RefusalCounts, type RefusalReason } from './refusals.ts';

/** A request that is not admitted at once. */
export type QueuedRequest = {
  readonly response: ServerResponse;
  /** Whether it needs many times the memory of its body. Few such requests are served at once. */
  readonly isMemoryIntensive: boolean;
  serve(): void;
  /** Responds with 503, before token and stack. */
  refuse(): void;
};

/** The requests in flight, with those that are queued for any executor. */
type ActiveRequests = { readonly activeCount: number };

/**
 * Maximum number of requests in flight; further requests are queued. This number keeps the process and PostgreSQL busy.
 */
const MAX_IN_FLIGHT = 64;

/**
 * Number of queued requests that are admitted in one turn of the event loop, however many are in flight. The event loop
 * then returns to probes and responses. If PostgreSQL is far away or slow, turns are short, and more requests are in
 * flight.
 */
const MIN_PER_TURN = 16;

/** A request that was queued for longer is refused, because callers commonly give up after a second. */
const MAX_WAIT_MS = 850;

/** The caller of a connection that was paused for longer has given up, or does not hurry. */
const LONG_PAUSE_MS = 1000;

/** Interval at which waits are checked and the pace is measured. */
const PERIOD_MS = 100;

type AdmissionsOptions<Kind extends string, Executor extends object> = {
  /** By the kind of a statement, the executor that sends it. Kinds may share an executor. */
  readonly executors: Readonly<Record<Kind, Executor>>;
  /** Whether further statements would only queue for the connections of an executor. */
  readonly isCrowded: (executor: Executor) => boolean;
  readonly inFlight: ActiveRequests;
  readonly log: Pick<EventLog, 'warning'>;
};

/**
 * The admissions of one instance: one for each executor of statements. While an executor is crowded, only the requests
 * that need it are queued or refused. With one queue for all, 200 creates with a key that waited for a lock left a
 * thirtieth of the reads beside them.
 */
export class Admissions<Kind extends string = string, Executor extends object = object> {
  readonly #admissions = new Map<object, Admission>();
  readonly #executors: Readonly<Record<string, object>>;
  readonly #counts: RefusalCounts;

  constructor({ executors, isCrowded, inFlight, log }: AdmissionsOptions<Kind, Executor>) {
    this.#executors = executors;
    this.#counts = new RefusalCounts(log);
    const budget = new RefusalBudget();
    for (const executor of new Set(Object.values<Executor>(executors))) {
      const isDatabaseCrowded = () => isCrowded(executor);
      const admission = new Admission({ inFlight, isDatabaseCrowded, budget, counts: this.#counts });
      this.#admissions.set(executor, admission);
    }
  }

  /** The admission to the executor of statements of this kind. */
  for(kind: Kind): Admission {
    return this.#admissions.get(this.#executors[kind] as object) as Admission;
  }

  /** Reads every connection, now and from now on, because a drain must know all requests that were sent. */
  resumeAll(): void {
    for (const admission of this.#admissions.values()) admission.resumeAll();
  }

  /** Number of refusals by reason. */
  get refusals(): RefusalCounts['byReason'] {
    return this.#counts.byReason;
  }

  /** Logs the refusals that have not been logged yet. */
  logRefusals(): void {
    this.#counts.flush();
  }
}

type AdmissionOptions = {
  readonly inFlight: ActiveRequests;
  readonly isDatabaseCrowded: () => boolean;
  readonly budget: RefusalBudget;
  readonly counts: RefusalCounts;
  readonly paused?: PausedSockets;
};

/** Decides which requests for one executor are served, and when. */
export class Admission {
  readonly #inFlight: ActiveRequests;
  readonly #isDatabaseCrowded: () => boolean;
  readonly #budget: RefusalBudget;
  readonly #counts: RefusalCounts;
  readonly #paused: PausedSockets;
  readonly #queue: AdmissionQueue<QueuedRequest>;
  readonly #reading: ResumePolicy;
  #isTurnScheduled = false;
  #isReadingAll = false;
  #timer: NodeJS.Timeout | undefined;

  constructor({ inFlight, isDatabaseCrowded, budget, counts, paused }: AdmissionOptions) {
    this.#inFlight = inFlight;
    this.#isDatabaseCrowded = isDatabaseCrowded;
    this.#budget = budget;
    this.#counts = counts;
    this.#paused = paused ?? new PausedSockets();
    this.#queue = new AdmissionQueue(() => this.#wake());
    this.#reading = new ResumePolicy(this.#paused, this.#queue, budget);
  }

  /** Whether a request is admitted at once. If so, the caller must serve it. */
  admits({ response, isMemoryIntensive }: QueuedRequest): boolean {
    const { memoryIntensive } = this.#queue;
    if (this.#queue.hasNext || this.#servedCount >= MAX_IN_FLIGHT || this.#isDatabaseCrowded()) return false;
    if (!isMemoryIntensive) return true;
    if (!memoryIntensive.isFree) return false;
    memoryIntensive.begin(response);
    return true;
  }

  /** Queues a request until it can be served, or refuses it if that would be too late. */
  queue(request: QueuedRequest): void {
    this.#timer ??= setInterval(() => this.#supervise(), PERIOD_MS).unref();
    if (this.#queue.hasRoom) this.#queue.add(request);
    else this.#refuse(request, 'no_room');
    this.#scheduleTurn();
  }

  /** Must be called after each response: its connection is not read at once while other requests are queued. */
  onAnswered(response: ServerResponse): void {
    if (this.#reading.isPauseDue()) this.#pauseAfter(response);
    this.#wake();
  }

  /** Reads every connection, now and from now on. */
  resumeAll(): void {
    this.#isReadingAll = true;
    this.#paused.resumeFirst(this.#paused.size);
  }

  /** Number of requests in flight that are not in this queue. */
  get #servedCount(): number {
    return this.#inFlight.activeCount - this.#queue.length;
  }

  #wake(): void {
    if (this.#queue.length > 0 || this.#paused.size > 0) this.#scheduleTurn();
  }

  #scheduleTurn(): void {
    if (this.#isTurnScheduled) return;
    this.#isTurnScheduled = true;
    setImmediate(() => this.#runTurn());
  }

  #runTurn(): void {
    this.#isTurnScheduled = false;
    const limit = Math.max(MIN_PER_TURN, MAX_IN_FLIGHT - this.#servedCount);
    let admitted = 0;
    while (admitted < limit && this.#queue.hasNext && !this.#isDatabaseCrowded()) {
      this.#admitFirst();
      admitted += 1;
    }
    this.#queue.pace.count(admitted);
    this.#reading.resume(admitted);
    // Otherwise the next response, or the timer, continues.
    if ((admitted > 0 && this.#queue.hasNext) || this.#reading.isResuming) this.#scheduleTurn();
  }

  /**
   * First in, first out. Newest first would refuse the older requests, or let their callers give up, after a long wait.
   */
  #admitFirst(): void {
    const request = this.#queue.takeNext();
    if (!request) return;
    if (isDisconnected(request)) this.#refuse(request, 'caller_left');
    else {
      if (request.isMemoryIntensive) this.#queue.memoryIntensive.begin(request.response);
      request.serve();
    }
  }

  #refuse(request: QueuedRequest, reason: RefusalReason): void {
    this.#budget.pay(request);
    this.#counts.add(reason);
    if (this.#budget.affordable() >= 1) return;
    this.#reading.isOverloaded = true;
    this.#pauseAfter(request.response);
  }

  /** Until the response is sent, Node itself continues to read the rest of the request. */
  #pauseAfter(response: ServerResponse): void {
    response.once('close', () => {
      // Without the timer nothing would read the connection again.
      if (this.#timer && !this.#isReadingAll) this.#paused.pause(response.req.socket);
    });
  }

  #supervise(): void {
    const queue = this.#queue;
    const now = performance.now();
    queue.pace.measure(now);
    for (const late of queue.takeAllBefore(now - MAX_WAIT_MS))
      this.#refuse(late, isDisconnected(late) ? 'caller_left' : 'waited_too_long');
    if (queue.length === 0) this.#paused.resumeFirst(queue.limit);
    else this.#paused.resumeOld(LONG_PAUSE_MS);
    this.#reading.isOverloaded = queue.length + this.#paused.size > queue.limit;
    this.#scheduleTurn();
    if (queue.length === 0 && this.#paused.size === 0) this.#stopTimer();
  }

  /** Nothing is left to do until a request is queued again. */
  #stopTimer(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
    this.#reading.isOverloaded = false;
    this.#queue.pace.reset();
  }
}

/**
 * Whether the client has closed the connection, or says that it sends no more. Such a client hardly waits for a
 * response.
 */
function isDisconnected({ response }: QueuedRequest): boolean {
  return response.destroyed || response.req.socket.readableEnded;
}
