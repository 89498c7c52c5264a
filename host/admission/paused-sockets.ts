import type { Socket } from 'node:net';
import type { RefusalBudget } from './refusals.ts';

/**
 * Share of the connections that were paused for long that is read again at once. Most of their callers have given up,
 * and reading such a connection costs as much as a refusal.
 */
const OLD_SHARE = 1 / 10;

/** The connections of one server whose next request stays in the kernel, where it costs the process nothing. */
export class PausedSockets {
  /** In the order in which they were paused. */
  readonly #paused: { readonly socket: Socket; readonly since: number }[] = [];

  get size(): number {
    return this.#paused.length;
  }

  /** Stops reading a connection whose last response was sent. */
  pause(socket: Socket): void {
    // Each of several pipelined requests has a response, but the connection is paused once.
    if (socket.destroyed || socket.isPaused()) return;
    socket.pause();
    this.#paused.push({ socket, since: performance.now() });
  }

  /** Resumes so many connections, in the order in which they were paused. */
  resumeFirst(count: number): void {
    for (let left = count; left >= 1; left -= 1) {
      const first = this.#paused.shift();
      if (!first) return;
      first.socket.resume();
    }
  }

  /**
   * Resumes so many connections. Those that were paused last come first, because their callers have waited least.
   * Connections that were paused for longer than `maxAge` milliseconds are not resumed.
   */
  resumeLast(count: number, maxAge = Number.POSITIVE_INFINITY): void {
    const after = performance.now() - maxAge;
    for (let left = count; left >= 1; left -= 1) {
      const last = this.#paused.at(-1);
      if (!last || last.since < after) return;
      this.#paused.pop();
      last.socket.resume();
    }
  }

  /** Resumes a part of the connections that were paused for longer than this time, in milliseconds. */
  resumeOld(age: number): void {
    const before = performance.now() - age;
    const young = this.#paused.findIndex(({ since }) => since >= before);
    const old = young < 0 ? this.#paused.length : young;
    for (const { socket } of this.#paused.splice(0, Math.ceil(old * OLD_SHARE))) socket.resume();
  }
}

/** While fewer requests are queued, paused connections are resumed, the first one first. */
const FEW_QUEUED = 16;

/**
 * While so many requests are queued, connections whose request was answered are paused, so that queued requests do not
 * survive collections of the young generation. README.md has figures for other numbers.
 */
const MANY_QUEUED = 96;

/**
 * Between these limits, at least one of so many answered connections is paused in exchange for the first paused one, so
 * that each has its turn. Each exchange costs 20 microseconds.
 */
const EXCHANGE_AMONG = 16;

/** Share of the requests that can be served in time after which the last paused connection has its turn. */
const IN_TIME_SHARE = 0.9;

/** A refusal on a connection that was paused for longer would no longer be prompt. */
const MAX_PROMPT_MS = 50;

/** The requests that are queued, and how many may be. */
type QueueState = { readonly length: number; readonly limit: number; readonly hasRoom: boolean };

/** Decides which connections an overloaded instance reads. */
export class ResumePolicy {
  /** Whether more requests wait, in the queue or in the kernel, than can be served in time. */
  isOverloaded = false;
  readonly #paused: PausedSockets;
  readonly #queue: QueueState;
  readonly #budget: RefusalBudget;
  #answered = 0;
  /** Number of connections that were paused, without another one resumed instead. */
  #exchanged = 0;

  constructor(paused: PausedSockets, queue: QueueState, budget: RefusalBudget) {
    this.#paused = paused;
    this.#queue = queue;
    this.#budget = budget;
  }

  /** Whether the connection of a sent response is paused, because others come first. Call it once for each response. */
  isPauseDue(): boolean {
    if (this.isOverloaded || this.#queue.length >= MANY_QUEUED) return true;
    return this.#paused.size > 0 && this.#isExchangeDue();
  }

  /** Resumes as many connections as the admitted requests have made room for. */
  resume(admitted: number): void {
    if (!this.isOverloaded)
      this.#paused.resumeFirst(Math.max(FEW_QUEUED - this.#queue.length, this.#exchanged));
    else {
      // Not all can be served in time, so callers that have not given up yet come first. As many as have left the
      // queue may join it. Beyond these, only connections for which a prompt refusal can be paid are read.
      const places = this.#queue.hasRoom ? admitted : 0;
      this.#paused.resumeLast(places);
      this.#paused.resumeLast(this.#budget.affordable() - places, MAX_PROMPT_MS);
    }
    this.#exchanged = 0;
  }

  /** Whether the connections that were resumed had no request, so that more can be resumed. */
  get isResuming(): boolean {
    return !this.isOverloaded && this.#paused.size > 0 && this.#queue.length < FEW_QUEUED;
  }

  #isExchangeDue(): boolean {
    this.#answered += 1;
    const interval = Math.min(EXCHANGE_AMONG, (IN_TIME_SHARE * this.#queue.limit) / this.#paused.size);
    if (this.#answered < interval) return false;
    this.#answered = 0;
    this.#exchanged += 1;
    return true;
  }
}
