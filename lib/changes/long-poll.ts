import { AsyncResource } from 'node:async_hooks';
import type { ChangeRow } from './change.ts';
import type { Place } from './change-cursor.ts';
import type { Feed, Look, Page } from './feed.ts';
import { cursorExpired } from './refusals.ts';

/** What a reader waits for: changes after a place, and not those of an actor. */
export type Wish = {
  readonly after: Place;
  readonly limit: number;
  readonly excludeActor?: string | undefined;
};

/** Those who wait for changes of an instance. One poll serves them all, and none runs while nobody waits. */
export type LongPoll = {
  /** How many wait. */
  readonly waiting: number;
  /**
   * Waits until `over`, and resolves with the first page that is not empty, or with an empty one: that only after a look
   * which began when the reader was there, however early the wait is over, unless PostgreSQL is away. Undefined if too many
   * wait, or if the reader is far behind.
   *
   * @throws {Problem} cursor_expired_error
   */
  wait(wish: Wish, over: AbortSignal): Promise<Page | undefined> | undefined;
};

type Reader = {
  readonly wish: Wish;
  /** Up to where the feed holds nothing for this reader. */
  after: Place;
  /** Whether a look has found nothing for this reader, or has failed. */
  isServed: boolean;
  isOver: boolean;
  readonly settle: (page: Page | undefined | Promise<never>) => void;
};

const MOST_WAITING = 1000;
/** In changes: what a poll reads, and how far behind a reader may be. */
const PAGE = 1000;
/** In milliseconds between two polls: when a reader is new or behind, else, and after one that failed. */
const PAUSES = { behind: 10, idle: 50, failed: 500 };

/** The long poll of an instance. A poll belongs to no request, neither to its scope nor to its time. */
export function createLongPoll(feed: Pick<Feed, 'look'>): LongPoll {
  const readers = new Set<Reader>();
  /** As the last look found it; 0 before the first. */
  let head = 0;
  let isForAll = false;
  let isPolling = false;
  let timer: NodeJS.Timeout | undefined;

  const isFar = ({ position }: Place) => head - position > PAGE;
  const pollInBackground = AsyncResource.bind(() => void poll());

  function pollIn(milliseconds: number): void {
    clearTimeout(timer);
    if (readers.size > 0) timer = setTimeout(pollInBackground, milliseconds);
  }

  async function poll(): Promise<void> {
    // A reader that comes during the look is served by the next: this one may have looked before.
    const present = [...readers];
    if (present.length === 0) return;
    isPolling = true;
    const after = beginningFor(present.map((reader) => reader.after));
    const look = await feed.look({ after, limit: PAGE }).catch(() => undefined);
    isPolling = false;
    if (look) head = look.head;
    for (const reader of present) {
      if (!look) reader.isServed = true;
      else if (readers.has(reader) && reader.after.position >= after) serve(reader, look);
      leaveIfOver(reader);
    }
    const isBehind = [...readers].some((reader) => !reader.isServed || reader.after.position < head);
    pollIn(!look ? PAUSES.failed : isBehind ? PAUSES.behind : PAUSES.idle);
  }

  /** In turn behind the last of all readers and behind the last of those near the head: neither delays the others. */
  function beginningFor(places: readonly Place[]): number {
    const near = places.filter((place) => !isFar(place));
    isForAll = !isForAll;
    const served = isForAll || near.length === 0 ? places : near;
    return Math.min(...served.map(({ position }) => position));
  }

  function serve(reader: Reader, look: Look): void {
    if (!look.holds(reader.after)) {
      reader.settle(Promise.reject(cursorExpired()));
      return;
    }
    const { limit } = reader.wish;
    const { position } = look.end;
    const isNew = !reader.isServed;
    reader.isServed ||= position === look.head || position > reader.after.position;
    const news = look.changes.filter((change) => isNews(change, reader)).slice(0, limit);
    if (news.length === limit) reader.after = look.placeAt(Number(news.at(-1)?.position));
    else if (position >= reader.after.position) reader.after = look.end;
    if (news.length > 0) reader.settle({ changes: news, end: reader.after });
    // It was let in while the head was not known, and is sooner there by itself.
    else if (isNew && isFar(reader.after)) reader.settle(undefined);
  }

  function leaveIfOver(reader: Reader): void {
    if (reader.isOver && reader.isServed) reader.settle({ changes: [], end: reader.after });
  }

  return {
    get waiting() {
      return readers.size;
    },
    wait(wish, over) {
      if (readers.size >= MOST_WAITING || isFar(wish.after)) return undefined;
      return new Promise((resolve) => {
        const { after } = wish;
        const reader: Reader = { wish, after, isServed: false, isOver: false, settle };
        function settle(page: Page | undefined | Promise<never>): void {
          readers.delete(reader);
          over.removeEventListener('abort', leave);
          resolve(page);
        }
        function leave(): void {
          reader.isOver = true;
          leaveIfOver(reader);
          if (!reader.isServed && !isPolling) pollIn(0);
        }
        readers.add(reader);
        over.addEventListener('abort', leave, { once: true });
        if (over.aborted) leave();
        else if (!isPolling && readers.size === 1) pollIn(0);
      });
    },
  };
}

function isNews(change: ChangeRow, { after, wish }: Reader): boolean {
  return Number(change.position) > after.position && change.actor !== wish.excludeActor;
}
