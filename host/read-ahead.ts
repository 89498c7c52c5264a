import type { RefusalBudget } from './refusal-budget.ts';
import type { Room } from './room.ts';
import type { Unread } from './unread.ts';

/** Which connections an overloaded instance reads: a request that lies in the kernel costs the process nothing. */
export type ReadAhead = {
  /** Whether the connection of an answer that goes out is to be left unread: others are to be read first. Asked once for each. */
  isToLeave(): boolean;
  /** Reads unread connections for the room that those have left who were let in. */
  readOn(letIn: number): void;
  /** Whether those read had no request, so that more of them can be. */
  readonly isReadingOn: boolean;
};

/** While fewer wait at the door, unread connections are read, the first first. */
const FEW = 16;

/**
 * While so many wait at the door, answered connections are left unread, so that what waits does not live through
 * collections of the young generation. With 2,000 connections that were all read these took 23 % of the time; between 16 and
 * 96 a twentieth more is answered than between 128 and 256, and the middle answer comes after 6 milliseconds in place of 16.
 * With fewer than 96 connections are left and read again whenever callers pause for a millisecond.
 */
const MANY = 96;

/**
 * In between, of so many answered connections one at least is left in exchange for the first of the unread, so that each
 * has its turn. What belongs to a connection that has lain unread is in no cache any more, and its request costs 20
 * microseconds more than the 40 of one whose connection was just answered: from 2,000 connections a tenth less is answered
 * when one of four is exchanged, and two tenths when each is.
 */
const EXCHANGE = 16;

/** The part of what can be served in time that is to be served before the last of the unread has its turn. */
const IN_TIME = 0.9;

/** In milliseconds: a refusal of what has lain unread for longer would not come at once any more. */
const PROMPTLY = 50;

type Options = {
  readonly unread: Unread;
  readonly room: Room;
  readonly budget: RefusalBudget;
  /** How many wait at the door. */
  readonly waiting: () => number;
  /** Whether more wait, read or unread, than can be served in time. */
  readonly isPressed: () => boolean;
};

/** The reading of one server's connections. */
export function createReadAhead({ unread, room, budget, waiting, isPressed }: Options): ReadAhead {
  let answered = 0;
  /** Left, and nothing read in place of them yet. */
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
        // Not all can be served in time: those first whose callers have not given up yet. As many as have left the queue may
        // come to it; beyond those only whom a prompt refusal can be paid for.
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
