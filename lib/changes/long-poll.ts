import { AsyncResource } from 'node:async_hooks';
import type { ChangeRow } from './change.ts';
import type { Place } from './change-cursor.ts';
import type { ChangeFeed, FeedPage, Page } from './feed.ts';
import { cursorExpired } from './refusals.ts';

/** The changes that a reader waits for: those after a place, except those of an actor. */
type WaitRequest = {
  readonly after: Place;
  readonly limit: number;
  readonly excludeActor?: string | undefined;
};

type Reader = {
  readonly request: WaitRequest;
  /** The place up to which the feed has no change for this reader. */
  after: Place;
  /** Whether a look has found no change for this reader, or has failed. */
  isServed: boolean;
  isOver: boolean;
  readonly settle: (page: Page | undefined | Promise<never>) => void;
};

const MAX_WAITING = 1000;
/** Number of changes that a poll reads, and that a waiting reader may be behind. */
const PAGE = 1000;
/** Milliseconds between two polls: if a reader is new or behind, otherwise (`idle`), and after a failed poll. */
const PAUSES = { behind: 10, idle: 50, failed: 500 };

/**
 * The long poll of an instance. One poll serves all waiting readers, and there is none while no reader waits. A poll has
 * neither the scope nor the time limit of a request.
 */
export class LongPoll {
  readonly #feed: Pick<ChangeFeed, 'look'>;
  readonly #readers = new Set<Reader>();
  readonly #pollInBackground = AsyncResource.bind(() => void this.#poll());
  /** The latest position at the last look; 0 before the first look. */
  #head = 0;
  #isForAll = false;
  #isPolling = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(feed: Pick<ChangeFeed, 'look'>) {
    this.#feed = feed;
  }

  /** Number of waiting readers. */
  get waiting(): number {
    return this.#readers.size;
  }

  /**
   * Waits until `over`. Resolves with the first page that is not empty, otherwise with an empty page. The empty page
   * comes from a look that began after this call, however early the wait is over, unless PostgreSQL is unavailable.
   * Undefined if too many readers wait, or if the reader is far behind.
   *
   * @throws {Problem} cursor_expired_error
   */
  wait(request: WaitRequest, over: AbortSignal): Promise<Page | undefined> | undefined {
    if (this.#readers.size >= MAX_WAITING || this.#isFar(request.after)) return undefined;
    const { promise, resolve } = Promise.withResolvers<Page | undefined>();
    const leave = () => {
      reader.isOver = true;
      leaveIfOver(reader);
      if (!reader.isServed && !this.#isPolling) this.#pollIn(0);
    };
    const reader: Reader = {
      request,
      after: request.after,
      isServed: false,
      isOver: false,
      settle: (page) => {
        this.#readers.delete(reader);
        over.removeEventListener('abort', leave);
        resolve(page);
      },
    };
    this.#readers.add(reader);
    over.addEventListener('abort', leave, { once: true });
    if (over.aborted) leave();
    else if (!this.#isPolling && this.#readers.size === 1) this.#pollIn(0);
    return promise;
  }

  #isFar({ position }: Place): boolean {
    return this.#head - position > PAGE;
  }

  #pollIn(milliseconds: number): void {
    clearTimeout(this.#timer);
    if (this.#readers.size > 0) this.#timer = setTimeout(this.#pollInBackground, milliseconds);
  }

  async #poll(): Promise<void> {
    // A reader that comes during this look is served by the next one, because this look may be older than the reader.
    const present = [...this.#readers];
    if (present.length === 0) return;
    this.#isPolling = true;
    const after = this.#chooseBeginning(present.map((reader) => reader.after));
    const look = await this.#feed.look({ after, limit: PAGE }).catch(() => undefined);
    this.#isPolling = false;
    if (look) this.#head = look.head;
    // While PostgreSQL is unavailable, no reader is held back for one more look.
    for (const reader of look ? present : this.#readers) {
      if (!look) reader.isServed = true;
      else if (this.#readers.has(reader) && reader.after.position >= after) this.#serve(reader, look);
      leaveIfOver(reader);
    }
    const isBehind = [...this.#readers].some(
      (reader) => !reader.isServed || reader.after.position < this.#head,
    );
    this.#pollIn(!look ? PAUSES.failed : isBehind ? PAUSES.behind : PAUSES.idle);
  }

  /** Alternates between the last of all readers and the last reader near the head, so that neither delays the other. */
  #chooseBeginning(places: readonly Place[]): number {
    const near = places.filter((place) => !this.#isFar(place));
    this.#isForAll = !this.#isForAll;
    const served = this.#isForAll || near.length === 0 ? places : near;
    return Math.min(...served.map(({ position }) => position));
  }

  #serve(reader: Reader, look: FeedPage): void {
    if (!look.holds(reader.after)) {
      reader.settle(Promise.reject(cursorExpired()));
      return;
    }
    const { limit } = reader.request;
    const { position } = look.end;
    const isNew = !reader.isServed;
    reader.isServed ||= position === look.head || position > reader.after.position;
    const changes = look.changes.filter((change) => isWanted(change, reader)).slice(0, limit);
    if (changes.length === limit) reader.after = look.placeAt(Number(changes.at(-1)?.position));
    else if (position >= reader.after.position) reader.after = look.end;
    if (changes.length > 0) reader.settle({ changes, end: reader.after });
    // This reader joined while the head was unknown. It is far behind, and reads faster by itself.
    else if (isNew && this.#isFar(reader.after)) reader.settle(undefined);
  }
}

function leaveIfOver({ isOver, isServed, after, settle }: Reader): void {
  if (isOver && isServed) settle({ changes: [], end: after });
}

function isWanted(change: ChangeRow, { after, request }: Reader): boolean {
  return Number(change.position) > after.position && change.actor !== request.excludeActor;
}
