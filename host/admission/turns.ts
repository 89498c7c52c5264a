import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Caller } from './callers.ts';

/** A request that is not admitted at once. */
export type QueuedRequest = {
  readonly response: ServerResponse;
  readonly caller: Caller;
  /** Whether it needs many times the memory of its body. Few such requests are served at once. */
  readonly isMemoryIntensive: boolean;
  serve(): void;
  /** Responds with 503, before token and stack. */
  refuse(): void;
};

/** Maximum number of turns. Further callers share one more turn. */
const MAX_TURNS = 256;

/** No `sub` is empty. */
const FURTHER_CALLERS = '';

/** The callers that have something waiting, each with its turn. The first turn is next. */
export class Turns {
  #turns: Turn[] = [];
  #queued = 0;

  /** Number of queued requests of all callers. */
  get queued(): number {
    return this.#queued;
  }

  get isEmpty(): boolean {
    return this.#turns.length === 0;
  }

  /** Whether a request is queued that may be admitted now. */
  hasNext(isMemoryIntensiveFree: boolean): boolean {
    return this.#turns.some((turn) => turn.hasNext(isMemoryIntensiveFree));
  }

  add(request: QueuedRequest): void {
    this.for(request.caller).add(request);
    this.#queued += 1;
  }

  /** Removes one request of the first caller that has an admissible one. Its next turn is the last. */
  takeNext(isMemoryIntensiveFree: boolean): QueuedRequest | undefined {
    const index = this.#turns.findIndex((turn) => turn.hasNext(isMemoryIntensiveFree));
    const [turn] = index < 0 ? [] : this.#turns.splice(index, 1);
    if (!turn) return undefined;
    this.#turns.push(turn);
    this.#queued -= 1;
    return turn.takeNext(isMemoryIntensiveFree);
  }

  /** Removes the last request of the caller that has most; among equals, of the one whose turn is farthest away. */
  takeLastOfLongest(): QueuedRequest | undefined {
    const longest = this.#turns.reduce((most, turn) => (turn.queued >= most.queued ? turn : most));
    this.#queued -= 1;
    return longest.takeLast();
  }

  /** Removes all requests that came before a time of `performance.now`, in milliseconds. */
  takeAllBefore(time: number): QueuedRequest[] {
    const taken = this.#turns.flatMap((turn) => turn.takeAllBefore(time));
    this.#queued -= taken.length;
    return taken;
  }

  /**
   * Reads further connections of all callers that have few requests queued, while fewer than `limit` requests are. With
   * many callers, the requests that are read beyond that would only be refused. Returns whether more can be read.
   */
  readAhead(limit: number): boolean {
    let room = Math.floor(limit) - this.#queued;
    for (const turn of this.#turns) room -= turn.resume(Math.min(FEW_QUEUED - turn.queued, room));
    this.#turns = this.#turns.filter(({ queued, paused }) => queued + paused.length > 0);
    return room > 0 && this.#turns.some(({ queued, paused }) => paused.length > 0 && queued < FEW_QUEUED);
  }

  /** Reads a part of the connections that have not been read for so long, in milliseconds. */
  resumeOld(age: number): void {
    const before = performance.now() - age;
    for (const turn of this.#turns) turn.resume(Math.ceil(countBefore(before, turn.paused) * OLD_SHARE));
  }

  resumeAll(): void {
    for (const turn of this.#turns) turn.resume(turn.paused.length);
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

  /** Requests without a verified token never share a turn with callers that are known. */
  #isFurther(caller: Caller): boolean {
    return caller !== undefined && caller !== FURTHER_CALLERS && this.#turns.length >= MAX_TURNS;
  }
}

/** While fewer requests of a caller are queued, its paused connections are resumed, the first one first. */
const FEW_QUEUED = 16;

/**
 * While so many requests of a caller are queued, its connections whose request was answered are paused, so that queued
 * requests do not survive collections of the young generation. README.md has figures for other numbers.
 */
const MANY_QUEUED = 96;

/** Between these limits, one of so many answered connections is paused in exchange for the first paused one. */
const EXCHANGE_AMONG = 16;

/** Each answered connection is paused in exchange for one that was paused for longer. */
const MAX_PAUSE_MS = 450;

/** If a connection was paused for longer, not all can be served in time: the one that was paused last comes first. */
const LATE_MS = 700;

/** Share of the connections that were paused for long that is read at once. Most of their callers have given up. */
const OLD_SHARE = 1 / 10;

/** Something that has waited since a time of `performance.now`. */
type Waiting<Thing> = { readonly waiting: Thing; readonly since: number };

const countBefore = (time: number, entries: readonly Waiting<unknown>[]): number => {
  const first = entries.findIndex(({ since }) => since >= time);
  return first < 0 ? entries.length : first;
};

/** What one caller has waiting, in the order in which it came. */
class Turn {
  readonly caller: Caller;
  /** Connections whose next request stays in the kernel, where it costs the process nothing. */
  readonly paused: Waiting<Socket>[] = [];
  /** Memory-intensive requests are in a list of their own, so that the others are found at once. */
  readonly #ordinary: Waiting<QueuedRequest>[] = [];
  readonly #memoryIntensive: Waiting<QueuedRequest>[] = [];
  #answered = 0;

  constructor(caller: Caller) {
    this.caller = caller;
  }

  /** Number of queued requests. */
  get queued(): number {
    return this.#ordinary.length + this.#memoryIntensive.length;
  }

  add(request: QueuedRequest): void {
    const list = request.isMemoryIntensive ? this.#memoryIntensive : this.#ordinary;
    list.push({ waiting: request, since: performance.now() });
  }

  hasNext(isMemoryIntensiveFree: boolean): boolean {
    return this.#ordinary.length > 0 || (isMemoryIntensiveFree && this.#memoryIntensive.length > 0);
  }

  /** Removes the first request that may be admitted now. */
  takeNext(isMemoryIntensiveFree: boolean): QueuedRequest | undefined {
    const [first, firstMemoryIntensive] = [this.#ordinary[0], this.#memoryIntensive[0]];
    const isItsTurn =
      isMemoryIntensiveFree && firstMemoryIntensive && !(first && first.since <= firstMemoryIntensive.since);
    return (isItsTurn ? this.#memoryIntensive : this.#ordinary).shift()?.waiting;
  }

  takeLast(): QueuedRequest | undefined {
    const [last, lastMemoryIntensive] = [this.#ordinary.at(-1), this.#memoryIntensive.at(-1)];
    const isOrdinary = last && !(lastMemoryIntensive && lastMemoryIntensive.since > last.since);
    return (isOrdinary ? this.#ordinary : this.#memoryIntensive).pop()?.waiting;
  }

  /** Removes all requests that came before a time of `performance.now`, in milliseconds. */
  takeAllBefore(time: number): QueuedRequest[] {
    return [this.#ordinary, this.#memoryIntensive].flatMap((list) =>
      list.splice(0, countBefore(time, list)).map(({ waiting }) => waiting),
    );
  }

  /** Whether the connection of a response is paused, because others of its caller come first. Call it once for each. */
  isPauseDue(): boolean {
    if (this.queued >= MANY_QUEUED) return true;
    const [first] = this.paused;
    if (!first) return false;
    const age = performance.now() - first.since;
    this.#answered += 1;
    if (this.#answered % EXCHANGE_AMONG > 0 && age < MAX_PAUSE_MS) return false;
    (age < LATE_MS ? this.paused.shift() : this.paused.pop())?.waiting.resume();
    return true;
  }

  /** Stops reading a connection whose last response was sent. */
  pause(socket: Socket): void {
    // Each of several pipelined requests has a response, but the connection is paused once.
    if (socket.destroyed || socket.isPaused()) return;
    socket.pause();
    this.paused.push({ waiting: socket, since: performance.now() });
  }

  /** Reads so many connections, in the order in which they were paused. Returns how many there were. */
  resume(count: number): number {
    if (count <= 0 || this.paused.length === 0) return 0;
    const read = this.paused.splice(0, count);
    for (const { waiting } of read) waiting.resume();
    return read.length;
  }
}
