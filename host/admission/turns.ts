import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Caller } from '../sockets/connections.ts';

export type QueuedRequest = {
  readonly response: ServerResponse;
  readonly caller: Caller;
  serve(): void;
  /** Responds with 503, before token and stack. */
  respondOverloaded(): void;
};

/** Maximum number of turns. Further callers share one more turn. */
const MAX_TURNS = 256;

/** No `sub` is empty. */
const FURTHER_CALLERS = '';

/** The callers that have something waiting, each with its turn. The first turn is next. */
export class Turns {
  #turns: Turn[] = [];
  #passesUnverified = false;
  /** Connections that were resumed in this period because they were late. */
  readonly #late = new Set<Socket>();

  get queued(): number {
    return this.#turns.reduce((sum, { queued }) => sum + queued.length, 0);
  }

  get isEmpty(): boolean {
    return this.#turns.length === 0;
  }

  /**
   * Whether a request can be served in time if `limit` requests can, which is 128 or more. From `SHARED_FROM` on, a caller
   * may have its share of them. A request on a late connection cannot. Call it once for each request.
   */
  hasRoom({ response, caller }: QueuedRequest, limit: number): boolean {
    if (this.#late.delete(response.req.socket)) return false;
    if (this.queued < SHARED_FROM) return true;
    const { queued, weight } = this.for(caller);
    return queued.length < this.#share(limit) * weight;
  }

  add(request: QueuedRequest): void {
    this.for(request.caller).queued.push({ waiting: request, since: performance.now() });
  }

  /** Removes the first request of the next caller. Requests without a verified token have every second turn only. */
  takeNext(): QueuedRequest | undefined {
    let turn = this.#nextTurn();
    if (turn && turn.caller === undefined) {
      this.#passesUnverified = !this.#passesUnverified;
      if (this.#passesUnverified) turn = this.#nextTurn();
    }
    return turn?.queued.shift()?.waiting;
  }

  /** Removes all requests that came before a time of `performance.now`, in milliseconds. */
  takeAllBefore(time: number): QueuedRequest[] {
    return this.#turns.flatMap(({ queued }) => takeBefore(time, queued));
  }

  /** Reads further connections of all callers that have few requests queued. Returns whether more can be read. */
  readAhead(): boolean {
    this.#turns = this.#turns.filter(({ queued, paused }) => queued.length + paused.length > 0);
    const share = this.#share(MANY_QUEUED);
    const lacking = ({ queued, weight }: Turn) => Math.ceil((share * weight) / 3) - queued.length;
    for (const turn of this.#turns) turn.resume(lacking(turn));
    return this.#turns.some((turn) => turn.paused.length > 0 && lacking(turn) > 0);
  }

  /** Reads the connections that were paused for so long that a request on them cannot be served in time. */
  resumeLate(): void {
    this.#late.clear();
    for (const { paused } of this.#turns)
      for (const socket of takeBefore(performance.now() - LATE_MS, paused)) this.#late.add(socket.resume());
  }

  /** Whether the connection of a response to this caller must be paused. Call it once for each. */
  isPauseDue(caller: Caller): boolean {
    const turn = this.find(caller);
    if (!turn) return false;
    if (turn.queued.length >= this.#share(MANY_QUEUED) * turn.weight) return true;
    const [first] = turn.paused;
    if (!first || performance.now() - first.since < MAX_PAUSE_MS) return false;
    turn.resume(1);
    return true;
  }

  resumeAll(): void {
    for (const turn of this.#turns) turn.resume(Number.POSITIVE_INFINITY);
  }

  /** The turn of a caller, if it has something waiting. */
  find(caller: Caller): Turn | undefined {
    const own = this.#turns.find((turn) => turn.caller === caller);
    return own ?? (this.#isFurther(caller) ? this.find(FURTHER_CALLERS) : undefined);
  }

  /** The turn of a caller, with or without something waiting. */
  for(caller: Caller): Turn {
    const found = this.find(caller);
    if (found) return found;
    const turn = new Turn(this.#isFurther(caller) ? FURTHER_CALLERS : caller);
    this.#turns.push(turn);
    return turn;
  }

  /** The first turn with a queued request. It is the last one from now on. */
  #nextTurn(): Turn | undefined {
    const turn = this.#turns.find(({ queued }) => queued.length > 0);
    if (turn) this.#turns.push(...this.#turns.splice(this.#turns.indexOf(turn), 1));
    return turn;
  }

  /** The part of `limit` that each caller may use, times the weight of its turn. */
  #share(limit: number): number {
    return limit / this.#turns.reduce((sum, { weight }) => sum + weight, 0);
  }

  /** Requests without a verified token never share a turn with callers that are known. */
  #isFurther(caller: Caller): boolean {
    return caller !== undefined && caller !== FURTHER_CALLERS && this.#turns.length >= MAX_TURNS;
  }
}

/** While fewer requests are queued, there is room for any caller. */
const SHARED_FROM = 96;

/**
 * While a caller has its share of so many queued requests, its answered connections are paused. With fewer than a third of
 * that share, they are resumed: see README.md.
 */
const MANY_QUEUED = 48;

/** A connection that was paused for longer is read, and an answered one is paused instead. */
const MAX_PAUSE_MS = 450;

/** A request on a connection that was paused for longer cannot be served in time. */
const LATE_MS = 700;

type Queued<Thing> = { readonly waiting: Thing; readonly since: number };

/** Removes what has waited since before a time of `performance.now`. */
function takeBefore<Thing>(time: number, entries: Queued<Thing>[]): Thing[] {
  const first = entries.findIndex(({ since }) => since >= time);
  return entries.splice(0, first < 0 ? entries.length : first).map(({ waiting }) => waiting);
}

/** What one caller has waiting, in the order in which it came. */
class Turn {
  readonly caller: Caller;
  /** Its part of a share. Requests without a verified token have every second turn only. */
  readonly weight: number;
  readonly queued: Queued<QueuedRequest>[] = [];
  /** Connections whose next request stays in the kernel, where it costs the process nothing. */
  readonly paused: Queued<Socket>[] = [];

  constructor(caller: Caller) {
    this.caller = caller;
    this.weight = caller === undefined ? 1 / 2 : 1;
  }

  /** Stops reading a connection whose last response was sent. */
  pause(socket: Socket): void {
    // Each of several pipelined requests has a response, but the connection is paused once.
    if (socket.destroyed || socket.isPaused()) return;
    socket.pause();
    this.paused.push({ waiting: socket, since: performance.now() });
  }

  /** Reads so many connections, in the order in which they were paused. */
  resume(count: number): void {
    if (count <= 0 || this.paused.length === 0) return;
    for (const { waiting } of this.paused.splice(0, count)) waiting.resume();
  }
}
