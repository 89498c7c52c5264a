import type { ServerResponse } from 'node:http';
import type { Database, StatementKind } from '../../lib/postgres/index.ts';
import { createAdmissionQueue } from './admission-queue.ts';
import { createMemoryIntensiveLimit } from './memory-intensive-limit.ts';
import { createPausedSockets, type PausedSockets } from './paused-sockets.ts';
import { createQueueLimit } from './queue-limit.ts';
import type { RefusalBudget } from './refusal-budget.ts';
import type { RefusalCounts } from './refusal-counts.ts';
import { createResumePolicy } from './resume-policy.ts';

/** A request that is not admitted at once. */
export type QueuedRequest = {
  readonly response: ServerResponse;
  /** Whether it needs many times the memory of its body. Few such requests are served at once. */
  readonly isMemoryIntensive: boolean;
  serve(): void;
  /** Responds with 503, before token and stack. */
  refuse(): void;
};

/** Decides which requests are served, and when. An overloaded instance continues to serve as many as it can. */
export type Admission = {
  /** Whether a request is admitted at once. If so, the caller must serve it. */
  admits(response: ServerResponse, isMemoryIntensive: boolean): boolean;
  /** Queues a request until it can be served, or refuses it if that would be too late. */
  queue(arrival: QueuedRequest): void;
  /** Must be called after each response: its connection is not read at once while other requests are queued. */
  onAnswered(response: ServerResponse): void;
  /** Reads every connection, now and from now on, because a drain must know all requests that were sent. */
  readAll(): void;
};

type Options = {
  /** Includes the requests that are queued for any executor, but not those behind another request of their connection. */
  readonly inFlight: () => number;
  /** Whether further statements would only queue for connections. */
  readonly isDatabaseCrowded: () => boolean;
  readonly budget: RefusalBudget;
  readonly unread: PausedSockets;
  readonly counts: RefusalCounts;
};

/**
 * Maximum number of requests in flight; further requests are queued. This number keeps the process and PostgreSQL busy.
 */
const IN_FLIGHT = 64;

/**
 * Number of queued requests that are admitted in one turn of the event loop, however many are in flight. The event loop
 * then returns to probes and responses. If PostgreSQL is far away or slow, turns are short, and more requests are in
 * flight.
 */
const PER_TURN = 16;

/**
 * In milliseconds. A request that was queued for longer is refused, because callers commonly give up after a second.
 */
const LONGEST_WAIT = 850;

/** In milliseconds. The caller of a connection that was unread for longer has given up, or does not hurry. */
const LONG_UNREAD = 1000;

/** In milliseconds: interval at which waits are checked and the pace is measured. */
const PERIOD = 100;

/** The admissions of one instance: one for each executor. */
export type Admissions = {
  /** The admission to the executor of statements of this kind. */
  for(kind: StatementKind): Admission;
  readAll(): void;
};

/**
 * While an executor is crowded, only the requests that need it are queued or refused. With one queue for all, 200 creates
 * with a key that waited for a lock left a thirtieth of the reads beside them.
 */
export function createAdmissions(
  { executors, isCrowded }: Pick<Database, 'executors' | 'isCrowded'>,
  options: Omit<Options, 'isDatabaseCrowded' | 'unread'>,
): Admissions {
  const admissions = new Map(
    Object.values(executors).map((executor) => [
      executor,
      createAdmission({
        ...options,
        isDatabaseCrowded: () => isCrowded(executor),
        unread: createPausedSockets(),
      }),
    ]),
  );
  return {
    for: (kind) => admissions.get(executors[kind]) as Admission,
    readAll() {
      for (const door of admissions.values()) door.readAll();
    },
  };
}

/** Creates the admission to one executor. */
export function createAdmission({ inFlight, isDatabaseCrowded, budget, unread, counts }: Options): Admission {
  const memoryIntensive = createMemoryIntensiveLimit(wake);
  const waiting = createAdmissionQueue<QueuedRequest>(() => memoryIntensive.isFree);
  const room = createQueueLimit();
  let isTurnScheduled = false;
  let timer: NodeJS.Timeout | undefined;
  /** Whether more requests wait, read or unread, than can be served in time. */
  let isPressed = false;
  let isReadingAll = false;
  const reading = createResumePolicy({
    unread,
    room,
    budget,
    waiting: () => waiting.length,
    isPressed: () => isPressed,
  });

  function admits(response: ServerResponse, isMemoryIntensive: boolean): boolean {
    if (waiting.hasNext || inFlight() - waiting.length >= IN_FLIGHT || isDatabaseCrowded()) return false;
    if (!isMemoryIntensive) return true;
    if (!memoryIntensive.isFree) return false;
    memoryIntensive.begin(response);
    return true;
  }

  function queue(arrival: QueuedRequest): void {
    timer ??= setInterval(supervise, PERIOD).unref();
    if (waiting.length < room.size) waiting.add(arrival);
    else refuse(arrival, 'no_room');
    takeTurn();
  }

  function wake(): void {
    if (waiting.length > 0 || unread.size > 0) takeTurn();
  }

  function takeTurn(): void {
    if (isTurnScheduled) return;
    isTurnScheduled = true;
    setImmediate(turn);
  }

  function turn(): void {
    isTurnScheduled = false;
    const most = Math.max(PER_TURN, IN_FLIGHT - inFlight() + waiting.length);
    let admitted = 0;
    while (admitted < most && waiting.hasNext && !isDatabaseCrowded()) {
      admitFirst();
      admitted += 1;
    }
    room.onLetIn(admitted);
    reading.readOn(admitted);
    // Otherwise the next response, or the timer, continues.
    if ((admitted > 0 && waiting.hasNext) || reading.isReadingOn) takeTurn();
  }

  /**
   * First in, first out. Newest first would refuse the older requests, or let their callers give up, after a long wait.
   */
  function admitFirst(): void {
    const arrival = waiting.takeNext();
    if (!arrival) return;
    if (hasLeft(arrival)) return void refuse(arrival, 'caller_left');
    if (arrival.isMemoryIntensive) memoryIntensive.begin(arrival.response);
    arrival.serve();
  }

  function refuse(arrival: QueuedRequest, reason: Parameters<RefusalCounts['add']>[0]): void {
    budget.spend(arrival.refuse);
    counts.add(reason);
    if (budget.affordable() >= 1) return;
    isPressed = true;
    leave(arrival.response);
  }

  /** Until the response is sent, Node itself continues to read the rest of the request. */
  function leave(response: ServerResponse): void {
    response.once('close', () => {
      // Without the timer nothing would read the connection again.
      if (timer && !isReadingAll) unread.leave(response.req.socket);
    });
  }

  function supervise(): void {
    const now = performance.now();
    room.measure(now);
    for (const late of waiting.takeThoseBefore(now - LONGEST_WAIT))
      refuse(late, hasLeft(late) ? 'caller_left' : 'waited_too_long');
    if (waiting.length === 0) unread.readFirst(room.size);
    else unread.readOld(LONG_UNREAD);
    isPressed = waiting.length + unread.size > room.size;
    takeTurn();
    if (waiting.length === 0 && unread.size === 0) stopTimer();
  }

  /** Nothing is left to do until a request is queued again. */
  function stopTimer(): void {
    clearInterval(timer);
    timer = undefined;
    isPressed = false;
    room.reset();
  }

  return {
    admits,
    queue,
    onAnswered(response) {
      if (reading.isToLeave()) leave(response);
      wake();
    },
    readAll() {
      isReadingAll = true;
      unread.readFirst(unread.size);
    },
  };
}

/**
 * Whether the client has closed the connection, or says that it sends no more. Such a client hardly waits for a
 * response.
 */
function hasLeft({ response }: QueuedRequest): boolean {
  return response.destroyed || response.req.socket.readableEnded;
}
