import type { ServerResponse } from 'node:http';
import type { Database } from '../lib/database/database.ts';
import type { Kind } from '../lib/database/statements.ts';
import { createHeavyTurns } from './heavy-turns.ts';
import { createLine } from './line.ts';
import { createReadAhead } from './read-ahead.ts';
import type { RefusalBudget } from './refusal-budget.ts';
import type { RefusalCounts } from './refusal-counts.ts';
import { createRoom } from './room.ts';
import { createUnread, type Unread } from './unread.ts';

/** A request that is not let in at once. */
export type Arrival = {
  readonly response: ServerResponse;
  /** Whether what it becomes is many times its body: few of these are served at once. */
  readonly isHeavy: boolean;
  serve(): void;
  /** Answers 503, before token and stack. */
  refuse(): void;
};

/** Decides which requests are served, and when: an overloaded instance goes on serving as many as it can. */
export type Door = {
  /** Whether a request may be served at once; it is to be, then. */
  letsIn(response: ServerResponse, isHeavy: boolean): boolean;
  /** Lets a request wait until it may be served, or refuses it if that would be too late. */
  queue(arrival: Arrival): void;
  /** To be called after each answer: its connection is not read at once while others wait for their turn. */
  onAnswered(response: ServerResponse): void;
  /** Reads every connection, at once and from now on: a drain has to know of all requests that were sent. */
  readAll(): void;
};

type Options = {
  /** Those that wait at a door included, and not those behind others on their connection. */
  readonly inFlight: () => number;
  /** Whether more statements would only queue for connections. */
  readonly isDatabaseCrowded: () => boolean;
  readonly budget: RefusalBudget;
  readonly unread: Unread;
  readonly counts: RefusalCounts;
};

/** So many are in flight before others wait at the door: they keep the process busy and PostgreSQL, too. */
const IN_FLIGHT = 64;

/**
 * So many of those are let in at a turn of the event loop, however many are in flight, so that it comes around to probes and
 * to answers: where PostgreSQL is far away or slow turns are short, and more are in flight.
 */
const PER_TURN = 16;

/** In milliseconds: who has waited for longer is refused, since callers commonly give up after a second. */
const LONGEST_WAIT = 850;

/** In milliseconds: whoever has lain unread for longer has given up, or does not hurry. */
const LONG_UNREAD = 1000;

/** In milliseconds: how often waits are looked at and the pace is measured. */
const PERIOD = 100;

/** The doors of one instance: one for each executor. */
export type Admissions = {
  /** The door to the executor that sends statements of this kind. */
  for(kind: Kind): Door;
  readAll(): void;
};

/**
 * While an executor is crowded, only the requests that need it wait or are refused: 200 creates with a key that waited for a
 * lock left a thirtieth of the reads beside them.
 */
export function createAdmissions(
  { executors, isCrowded }: Pick<Database, 'executors' | 'isCrowded'>,
  options: Omit<Options, 'isDatabaseCrowded' | 'unread'>,
): Admissions {
  const doors = new Map(
    Object.values(executors).map((executor) => [
      executor,
      createDoor({ ...options, isDatabaseCrowded: () => isCrowded(executor), unread: createUnread() }),
    ]),
  );
  return {
    for: (kind) => doors.get(executors[kind]) as Door,
    readAll() {
      for (const door of doors.values()) door.readAll();
    },
  };
}

/** The door to one executor. */
export function createDoor({ inFlight, isDatabaseCrowded, budget, unread, counts }: Options): Door {
  const heavyTurns = createHeavyTurns(goOn);
  const waiting = createLine<Arrival>(() => heavyTurns.isFree);
  const room = createRoom();
  let isTurnScheduled = false;
  let timer: NodeJS.Timeout | undefined;
  /** Whether more wait, read or unread, than can be served in time. */
  let isPressed = false;
  let isReadingAll = false;
  const reading = createReadAhead({
    unread,
    room,
    budget,
    waiting: () => waiting.length,
    isPressed: () => isPressed,
  });

  function letsIn(response: ServerResponse, isHeavy: boolean): boolean {
    if (waiting.hasNext || inFlight() - waiting.length >= IN_FLIGHT || isDatabaseCrowded()) return false;
    if (!isHeavy) return true;
    if (!heavyTurns.isFree) return false;
    heavyTurns.begin(response);
    return true;
  }

  function queue(arrival: Arrival): void {
    timer ??= setInterval(supervise, PERIOD).unref();
    if (waiting.length < room.size) waiting.add(arrival);
    else refuse(arrival, 'no_room');
    takeTurn();
  }

  function goOn(): void {
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
    let letIn = 0;
    while (letIn < most && waiting.hasNext && !isDatabaseCrowded()) {
      letInFirst();
      letIn += 1;
    }
    room.onLetIn(letIn);
    reading.readOn(letIn);
    // Otherwise the next answer, or the timer, goes on.
    if ((letIn > 0 && waiting.hasNext) || reading.isReadingOn) takeTurn();
  }

  /** First come, first served: newest first leaves those behind to be refused, or to give up, after a long wait. */
  function letInFirst(): void {
    const arrival = waiting.takeNext();
    if (!arrival) return;
    if (hasLeft(arrival)) return void refuse(arrival, 'caller_left');
    if (arrival.isHeavy) heavyTurns.begin(arrival.response);
    arrival.serve();
  }

  function refuse(arrival: Arrival, reason: Parameters<RefusalCounts['add']>[0]): void {
    budget.spend(arrival.refuse);
    counts.add(reason);
    if (budget.affordable() >= 1) return;
    isPressed = true;
    leave(arrival.response);
  }

  /** Until the answer is out Node itself goes on reading, for what is left of the request. */
  function leave(response: ServerResponse): void {
    response.once('close', () => {
      // Without the timer nobody would read it again.
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
    if (waiting.length === 0 && unread.size === 0) rest();
  }

  /** Nothing is left to do until somebody has to wait again. */
  function rest(): void {
    clearInterval(timer);
    timer = undefined;
    isPressed = false;
    room.reset();
  }

  return {
    letsIn,
    queue,
    onAnswered(response) {
      if (reading.isToLeave()) leave(response);
      goOn();
    },
    readAll() {
      isReadingAll = true;
      unread.readFirst(unread.size);
    },
  };
}

/** Whether its caller has closed the connection, or says that it sends no more: it has hardly patience to read, then. */
function hasLeft({ response }: Arrival): boolean {
  return response.destroyed || response.req.socket.readableEnded;
}
