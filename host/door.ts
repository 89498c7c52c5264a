import type { ServerResponse } from 'node:http';
import type { RefusalBudget } from './refusal-budget.ts';
import type { RefusalCounts } from './refusal-counts.ts';
import { createRoom } from './room.ts';
import type { Unread } from './unread.ts';

/** A request that is not let in at once. */
export type Arrival = {
  readonly response: ServerResponse;
  serve(): void;
  /** Answers 503, before token and stack. */
  refuse(): void;
};

/** Decides which requests are served, and when: an overloaded instance goes on serving as many as it can. */
export type Door = {
  /** Whether a request may be served at once. */
  readonly isOpen: boolean;
  /** Lets a request wait until it may be served, or refuses it if that would be too late. */
  queue(arrival: Arrival): void;
  /** To be called after each answer: under pressure its connection is not read at once. */
  onAnswered(response: ServerResponse): void;
};

type Options = {
  /** Those that wait at the door included. */
  readonly inFlight: () => number;
  /** Whether more statements would only queue for connections. */
  readonly isDatabaseCrowded: () => boolean;
  readonly budget: RefusalBudget;
  readonly unread: Unread;
  readonly counts: RefusalCounts;
};

/** So many are in flight before others wait at the door. */
const IN_FLIGHT = 128;

/** So many of those are let in at a turn of the event loop, so that it comes around to probes and to answers. */
const PER_TURN = 16;

/** In milliseconds: who has waited for longer is refused, since callers commonly give up after a second. */
const LONGEST_WAIT = 850;

/** In milliseconds: a refusal of what has lain unread for longer would not come at once any more. */
const PROMPTLY = 50;

/** In milliseconds: whoever has lain unread for longer has given up, or does not hurry. */
const LONG_UNREAD = 1000;

/** In milliseconds: how often waits are looked at and the pace is measured. */
const PERIOD = 100;

/** The door of one instance. */
export function createDoor({ inFlight, isDatabaseCrowded, budget, unread, counts }: Options): Door {
  const waiting: (Arrival & { readonly since: number })[] = [];
  const room = createRoom();
  let isTurnScheduled = false;
  let timer: NodeJS.Timeout | undefined;
  /** From when a refusal could not be paid for until nothing is unread. */
  let isPressed = false;

  function queue(arrival: Arrival): void {
    timer ??= setInterval(supervise, PERIOD).unref();
    if (waiting.length < room.size) waiting.push({ ...arrival, since: performance.now() });
    else refuse(arrival, 'no_room');
    takeTurn();
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
    while (letIn < most && waiting.length > 0 && !isDatabaseCrowded()) {
      letInFirst();
      letIn += 1;
    }
    room.onLetIn(letIn);
    // As many as have left the queue may come to it; beyond those only whom a prompt refusal can be paid for.
    const places = waiting.length < room.size ? letIn : 0;
    unread.read(places);
    unread.read(budget.affordable() - places, PROMPTLY);
    // Otherwise the next answer, or the timer, goes on.
    if (letIn > 0 && waiting.length > 0) takeTurn();
  }

  /** First come, first served: newest first leaves those behind to be refused, or to give up, after a long wait. */
  function letInFirst(): void {
    const arrival = waiting.shift();
    if (!arrival) return;
    if (hasLeft(arrival)) refuse(arrival, 'caller_left');
    else arrival.serve();
  }

  function refuse(arrival: Arrival, reason: Parameters<RefusalCounts['add']>[0]): void {
    budget.spend(arrival.refuse);
    counts.add(reason);
    if (budget.affordable() >= 1) return;
    isPressed = true;
    unread.leave(arrival.response);
  }

  function supervise(): void {
    const now = performance.now();
    room.measure(now);
    for (let [first] = waiting; first && now - first.since > LONGEST_WAIT; [first] = waiting) {
      waiting.shift();
      refuse(first, hasLeft(first) ? 'caller_left' : 'waited_too_long');
    }
    if (waiting.length === 0) unread.read(room.size);
    else unread.readOld(LONG_UNREAD);
    isPressed &&= unread.size > 0;
    takeTurn();
    if (waiting.length === 0 && unread.size === 0) rest();
  }

  /** Nothing is left to do until somebody has to wait again. */
  function rest(): void {
    clearInterval(timer);
    timer = undefined;
    room.reset();
  }

  return {
    get isOpen() {
      return waiting.length === 0 && inFlight() < IN_FLIGHT && !isDatabaseCrowded();
    },
    queue,
    onAnswered(response) {
      if (isPressed) unread.leave(response);
      if (waiting.length > 0) takeTurn();
    },
  };
}

/** Whether its caller has closed the connection, or says that it sends no more: it has hardly patience to read, then. */
function hasLeft({ response }: Arrival): boolean {
  return response.destroyed || response.req.socket.readableEnded;
}
