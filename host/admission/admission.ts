import type { RequestsInFlight } from '../requests-in-flight.ts';
import { isDisconnected } from '../sockets/connections.ts';
import type { AcceptQueue } from './accept-queue.ts';
import { AdmissionPace, INTERVAL_MS, MemoryIntensiveLimit } from './limits.ts';
import type { RefusalCounts, RefusalReason } from './refusals.ts';
import { type QueuedRequest, Turns } from './turns.ts';

/** While so many requests are served, further ones are queued. This number keeps the process and PostgreSQL busy. */
const MAX_SERVED = 64;

/**
 * Number of queued requests that are admitted in one pass of the event loop, however many are served. The event loop
 * then returns to probes and responses. If PostgreSQL is far away or slow, passes are short, and more requests are served.
 */
const MIN_PER_PASS = 16;

/** While the accept queue is long, passes admit nothing for so long, and are short: see test/overload/README.md. */
const ACCEPT_MS = 8;

/** A request that was queued for longer is refused, because callers commonly give up after a second. */
const MAX_WAIT_MS = 850;

const PERIOD_MS = 100;

type AdmissionOptions = {
  /** Whether further statements would only queue. */
  readonly isCrowded: () => boolean;
  /** The admission of all other requests, if its own are memory-intensive. */
  readonly others?: Admission;
  readonly inFlight: Pick<RequestsInFlight, 'servedCount' | 'isDraining'>;
  readonly refusals: RefusalCounts;
  readonly acceptQueue: AcceptQueue;
};

/** Decides which requests are served, and when. */
export class Admission {
  readonly #options: AdmissionOptions;
  readonly #turns = new Turns();
  #pace = new AdmissionPace();
  readonly #limit: MemoryIntensiveLimit | undefined;
  #isPassScheduled = false;
  /** When the last pass that admits has ended, in milliseconds. */
  #lastAdmitting = 0;
  /** Runs while a caller has a turn: without it nothing is queued or paused. */
  #timer: NodeJS.Timeout | undefined;

  constructor(options: AdmissionOptions) {
    this.#options = options;
    const { others, acceptQueue } = options;
    if (!others) return;
    const interval = () => {
      if (acceptQueue.isLong) return INTERVAL_MS.acceptQueue;
      return others.#turns.queued > 0 ? INTERVAL_MS.others : 0;
    };
    this.#limit = new MemoryIntensiveLimit(interval, () => this.#schedulePass());
  }

  /** Whether a request is admitted at once. If so, the caller must serve it. */
  admits({ response }: QueuedRequest): boolean {
    const { inFlight, acceptQueue } = this.#options;
    const isBusy = this.#turns.queued > 0 || inFlight.servedCount >= MAX_SERVED || acceptQueue.isLong;
    if (isBusy || this.#isFull) return false;
    this.#limit?.begin(response);
    return true;
  }

  /** Queues a request until it can be served. Refuses it if it would be too late. */
  queue(request: QueuedRequest): void {
    // The end of a connection is read one pass after its request.
    if (this.#options.acceptQueue.isLong) setImmediate(() => setImmediate(() => this.#add(request)));
    else this.#add(request);
  }

  #add(request: QueuedRequest): void {
    this.#timer ??= setInterval(() => this.#supervise(), PERIOD_MS).unref();
    if (this.#turns.hasRoom(request, this.#pace.servableInTime)) this.#turns.add(request);
    else this.#respondOverloaded(request, 'no_room');
    this.#schedulePass();
  }

  /** Must be called after each response: its connection is not read at once while its caller has its share queued. */
  onAnswered(request: QueuedRequest): void {
    if (!this.#timer) return;
    if (this.#turns.isPauseDue(request.caller)) this.#pauseAfter(request);
    this.#schedulePass();
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
    const isLeft = this.#options.acceptQueue.isLong && performance.now() - this.#lastAdmitting < ACCEPT_MS;
    this.#isPassScheduled = false;
    if (isLeft) this.#schedulePass();
    else this.#admitInTurns();
  }

  /** Admits requests, each of the next caller, first in, first out: newest first, older ones would wait in vain. */
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
    if (admitted > 0) this.#lastAdmitting = performance.now();
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

  /** Pauses in the pass after the response at the latest. Until then Node may read a body that has come, and then resumes the connection. */
  #pauseAfter({ response, caller }: QueuedRequest): void {
    const pause = () => {
      // Without the timer nothing would read the connection again.
      if (!this.#timer || this.#options.inFlight.isDraining) return;
      this.#turns.for(caller).pause(response.req.socket);
      this.#schedulePass();
    };
    response.once('close', () => setImmediate(pause));
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
    this.#pace = new AdmissionPace();
  }
}
