import type { PausedSockets } from './paused-sockets.ts';
import type { QueueLimit } from './queue-limit.ts';
import type { RefusalBudget } from './refusal-budget.ts';

/** Which connections an overloaded instance reads. A request in the kernel costs the process nothing. */
export type ResumePolicy = {
  /**
   * Whether the connection of a sent response is left unread, because others come first. Call it once for each
   * response.
   */
  isToLeave(): boolean;
  /** Reads unread connections, as many as the admitted requests have made room for. */
  readOn(letIn: number): void;
  /** Whether the connections that were read had no request, so that more can be read. */
  readonly isReadingOn: boolean;
};

/** While fewer requests are queued, unread connections are read, the first one first. */
const FEW = 16;

/**
 * While so many requests are queued, connections whose request was answered are left unread, so that queued requests do
 * not survive collections of the young generation. With 2,000 connections that were all read, the collections took 23 %
 * of the time. Between 16 and 96, a twentieth more is answered than between 128 and 256, and the median response comes
 * after 6 milliseconds instead of 16. With fewer than 96, connections are left and read again whenever callers pause
 * for a millisecond.
 */
const MANY = 96;

/**
 * Between these limits, at least one of so many answered connections is left in exchange for the first unread one, so
 * that each has its turn. The data of a connection that was unread is in no cache, so its request costs 20 microseconds
 * more than the 40 of a connection that was just answered. From 2,000 connections a tenth less is answered if one of
 * four is exchanged, and two tenths less if each is.
 */
const EXCHANGE = 16;

/** Share of the requests that can be served in time after which the last unread connection has its turn. */
const IN_TIME = 0.9;

/** In milliseconds. A refusal on a connection that was unread for longer would no longer be prompt. */
const PROMPTLY = 50;

type Options = {
  readonly unread: PausedSockets;
  readonly room: QueueLimit;
  readonly budget: RefusalBudget;
  /** Number of queued requests. */
  readonly waiting: () => number;
  /** Whether more requests wait, read or unread, than can be served in time. */
  readonly isPressed: () => boolean;
};

/** Creates the reading of one server's connections. */
export function createResumePolicy({ unread, room, budget, waiting, isPressed }: Options): ResumePolicy {
  let answered = 0;
  /** Number of connections that were left, without another one read instead. */
  let exchanged = 0;

  function isToExchange(): boolean {
    answered += 1;
    if (answered < Math.min(EXCHANGE, (IN_TIME * room.size) / unread.size)) return false;
    answered = 0;
    exchanged += 1;
    return true;
  }

  return {
    isToLeave: () => isPressed() || waiting() >= MANY || (unread.size > 0 && isToExchange()),
    readOn(letIn) {
      if (!isPressed()) unread.readFirst(Math.max(FEW - waiting(), exchanged));
      else {
        // Not all can be served in time, so callers that have not given up yet come first. As many as have left the
        // queue may join it. Beyond these, only connections for which a prompt refusal can be paid are read.
        const places = waiting() < room.size ? letIn : 0;
        unread.readLast(places);
        unread.readLast(budget.affordable() - places, PROMPTLY);
      }
      exchanged = 0;
    },
    get isReadingOn() {
      return !isPressed() && unread.size > 0 && waiting() < FEW;
    },
  };
}
