import { AsyncResource } from 'node:async_hooks';
import type { ChangeRow } from './change.ts';
import type { Place } from './change-cursor.ts';
import type { Feed, FeedPage, Page } from './feed.ts';
import { cursorExpired } from './refusals.ts';

/** The changes that a reader waits for: those after a place, except those of an actor. */
type WaitRequest = {
  readonly after: Place;
  readonly limit: number;
  readonly excludeActor?: string | undefined;
};

type Reader = {
  readonly wish: WaitRequest;
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
 * Creates the long poll of an instance. One poll serves all waiting readers, and there is none while no reader waits. A
 * poll has neither the scope nor the time limit of a request.
 */
export function createLongPoll(feed: Pick<Feed, 'look'>) {
  const readers = new Set<Reader>();
  /** The latest position at the last look; 0 before the first look. */
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
    // A reader that comes during this look is served by the next one, because this look may be older than the reader.
    const present = [...readers];
    if (present.length === 0) return;
    isPolling = true;
    const after = beginningFor(present.map((reader) => reader.after));
    const look = await feed.look({ after, limit: PAGE }).catch(() => undefined);
    isPolling = false;
    if (look) head = look.head;
    // While PostgreSQL is unavailable, no reader is held back for one more look.
    for (const reader of look ? present : readers) {
      if (!look) reader.isServed = true;
      else if (readers.has(reader) && reader.after.position >= after) serve(reader, look);
      leaveIfOver(reader);
    }
    const isBehind = [...readers].some((reader) => !reader.isServed || reader.after.position < head);
    pollIn(!look ? PAUSES.failed : isBehind ? PAUSES.behind : PAUSES.idle);
  }

  /** Alternates between the last of all readers and the last reader near the head, so that neither delays the other. */
  function beginningFor(places: readonly Place[]): number {
    const near = places.filter((place) => !isFar(place));
    isForAll = !isForAll;
    const served = isForAll || near.length === 0 ? places : near;
    return Math.min(...served.map(({ position }) => position));
  }

  function serve(reader: Reader, look: FeedPage): void {
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
    // This reader joined while the head was unknown. It is far behind, and reads faster by itself.
    else if (isNew && isFar(reader.after)) reader.settle(undefined);
  }

  function leaveIfOver(reader: Reader): void {
    if (reader.isOver && reader.isServed) reader.settle({ changes: [], end: reader.after });
  }

  return {
    /** Number of waiting readers. */
    get waiting(): number {
      return readers.size;
    },
    /**
     * Waits until `over`. Resolves with the first page that is not empty, otherwise with an empty page. The empty page
     * comes from a look that began after this call, however early the wait is over, unless PostgreSQL is unavailable.
     * Undefined if too many readers wait, or if the reader is far behind.
     *
     * @throws {Problem} cursor_expired_error
     */
    wait(wish: WaitRequest, over: AbortSignal): Promise<Page | undefined> | undefined {
      if (readers.size >= MAX_WAITING || isFar(wish.after)) return undefined;
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
