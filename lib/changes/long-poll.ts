import { AsyncResource } from 'node:async_hooks';
import type { Place } from './change-cursor.ts';
import type { FeedPage, Page, Reading } from './feed-page.ts';
import { cursorExpired } from './refusals.ts';

/** A request that waits for changes after a place, except those of an actor, until `over`. */
type Reader = {
  /** The place up to which the feed has no change for this reader. */
  after: Place;
  readonly limit: number;
  readonly excludeActor?: string | undefined;
  readonly over: AbortSignal;
  /** Whether a look has found no change for this reader, or has failed. */
  isServed: boolean;
  readonly settle: (page: Page | undefined | Promise<never>) => void;
};

const MAX_READERS = 1000;
/** Number of changes that a poll reads, and that a waiting reader may be behind. */
const PAGE_SIZE = 1000;
/** Milliseconds between two polls: if a reader is new or behind, otherwise (`idle`), and after a failed poll. */
const PAUSES_MS = { behind: 10, idle: 50, failed: 500 };

/** The long poll of an instance. There is no poll while no reader waits. */
export class LongPoll {
  readonly #look: (reading: Reading) => Promise<FeedPage>;
  readonly #readers = new Set<Reader>();
  /** A poll has neither the scope nor the time limit of the request that caused it. */
  readonly #pollInBackground = AsyncResource.bind(() => void this.#poll());
  /** The latest position at the last look; 0 before the first look. */
  #head = 0;
  #isForAll = false;
  #isPolling = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(look: (reading: Reading) => Promise<FeedPage>) {
    this.#look = look;
  }

  get waiting(): number {
    return this.#readers.size;
  }

  /**
   * Waits until `over`. Resolves with the first page that is not empty, otherwise with an empty page. The empty page
   * comes from a look that began after this call, however early the wait is over, unless PostgreSQL is unavailable.
   * Undefined if too many readers wait, or if the reader is far behind the head that it has read, or the last poll.
   *
   * @throws {Problem} cursor_expired_error
   */
  wait(
    request: Omit<Reader, 'isServed' | 'settle'>,
    head = this.#head,
  ): Promise<Page | undefined> | undefined {
    const { after, over } = request;
    // No poll lowers the head of a database that was restored in an older state, while no reader waits.
    this.#head = Math.min(this.#head, head);
    if (this.#readers.size >= MAX_READERS || this.#isFar(after)) return undefined;
    const { promise, resolve } = Promise.withResolvers<Page | undefined>();
    const leave = () => {
      leaveIfOver(reader);
      if (!reader.isServed) this.#pollIn(0);
    };
    const reader: Reader = {
      ...request,
      isServed: false,
      settle: (page) => {
        this.#readers.delete(reader);
        over.removeEventListener('abort', leave);
        resolve(page);
      },
    };
    this.#readers.add(reader);
    over.addEventListener('abort', leave, { once: true });
    if (over.aborted || this.#readers.size === 1) this.#pollIn(0);
    return promise;
  }

  #isFar({ position }: Place): boolean {
    return this.#head - position > PAGE_SIZE;
  }

  /** Does nothing during a poll, which sets the time of the next one at its end. */
  #pollIn(milliseconds: number): void {
    if (this.#isPolling) return;
    clearTimeout(this.#timer);
    if (this.#readers.size > 0) this.#timer = setTimeout(this.#pollInBackground, milliseconds);
  }

  async #poll(): Promise<void> {
    // A reader that comes during this look is served by the next one, because this look may be older than the reader.
    const present = [...this.#readers];
    if (present.length === 0) return;
    this.#isPolling = true;
    const after = this.#chooseBeginning(present.map((reader) => reader.after));
    const look = await this.#look({ after, limit: PAGE_SIZE }).catch(() => undefined);
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
    this.#pollIn(!look ? PAUSES_MS.failed : isBehind ? PAUSES_MS.behind : PAUSES_MS.idle);
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
    const { after, limit, excludeActor, isServed } = reader;
    const { position } = look.end;
    reader.isServed ||= position === look.head || position > after.position;
    const changes = look.changes
      .filter((change) => Number(change.position) > after.position && change.actor !== excludeActor)
      .slice(0, limit);
    if (changes.length === limit) reader.after = look.placeAt(Number(changes.at(-1)?.position));
    else if (position >= after.position) reader.after = look.end;
    if (changes.length > 0) reader.settle({ changes, end: reader.after });
    // This reader joined while the head was unknown. It is far behind, and reads faster by itself.
    else if (!isServed && this.#isFar(reader.after)) reader.settle(undefined);
  }
}

function leaveIfOver({ over, isServed, after, settle }: Reader): void {
  if (over.aborted && isServed) settle({ changes: [], end: after });
}
