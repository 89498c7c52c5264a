import type { UserBody } from '../../stage/responses.ts';

/** What a request asks for; reads are entries, too. */
export type Operation = 'create' | 'batch' | 'update' | 'delete' | 'read';

/** What an update or a create gives. */
export type Fields = { email?: string; full_name?: string | null; is_active?: boolean };

/** A request to be sent. */
export type Asked = {
  readonly operation: Operation;
  readonly userId?: string;
  readonly fields?: Fields;
  /** The items of a batch. A row that sends batches keeps books of its own. */
  readonly items?: readonly Fields[];
  readonly headers?: Readonly<Record<string, string>>;
};

/** A request that was sent, and its answer: status 0 where none has come. Moments are those of `performance.now()`. */
export type Entry = Asked & {
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly sent: number;
  answered: number;
  status: number;
  /** Whether it has ended without an answer. */
  isLost: boolean;
  /** Whether the connection was refused, so that the service has got nothing of it. */
  isUnsent?: boolean;
  responseHeaders: Readonly<Record<string, string | undefined>>;
  body: string;
};

/** Answered with 5xx, or not at all; what is still under way is neither. */
export const isRefused = ({ status, isLost }: Entry): boolean => status >= 500 || isLost;

/** A write that may or may not have happened. */
export const isInDoubt = ({ operation, status }: Entry): boolean =>
  operation !== 'read' && (status === 0 || status >= 500);

/** A write that was acknowledged, its replays included. */
export const isAcknowledged = ({ operation, status }: Entry): boolean =>
  operation !== 'read' && status >= 200 && status < 300;

/** An acknowledgement of what an earlier request with the same key did. */
export const isReplay = ({ responseHeaders }: Entry): boolean =>
  responseHeaders['idempotency-replayed'] === 'true';

/** Refused because the first request with this key has not ended. */
export const isKeyInUse = ({ status, body }: Entry): boolean =>
  status === 409 && body.includes('idempotency_key_in_use_error');

export const keyOf = ({ headers }: Entry): string | undefined => headers?.['idempotency-key'];

export const userIn = ({ body }: Entry): UserBody => JSON.parse(body);

/** The version that an answer names in its ETag. */
export const versionIn = ({ responseHeaders }: Entry): number =>
  Number(/^"(\d+)"$/.exec(responseHeaders.etag ?? '')?.[1]);

/** All that was sent and what came of it. */
export class Ledger {
  readonly entries: Entry[] = [];

  /** Enters a request at the moment in which it is sent. */
  enter(entry: Entry): Entry {
    this.entries.push(entry);
    return entry;
  }

  /** The successes that were answered after a moment. */
  successesAfter(moment: number): readonly Entry[] {
    return this.entries.filter(({ answered, status }) => answered > moment && status >= 200 && status < 300);
  }

  /** How many of the requests that were sent after a moment have been refused with 5xx, or lost. */
  refusedAfter(moment: number): number {
    return this.entries.filter((entry) => entry.sent > moment && isRefused(entry)).length;
  }

  get acknowledged(): readonly Entry[] {
    return this.entries.filter(isAcknowledged);
  }

  get inDoubt(): readonly Entry[] {
    return this.entries.filter(isInDoubt);
  }

  /** How many answers there were of each status that is no success, to requests after a moment; 0 is no answer. */
  refusedByStatus(moment = Number.NEGATIVE_INFINITY): Record<string, number> {
    const counts: Record<string, number> = {};
    for (const { status, sent, isLost } of this.entries) {
      const isOver = status !== 0 || isLost;
      if (isOver && sent > moment && (status < 200 || status >= 300))
        counts[status] = (counts[status] ?? 0) + 1;
    }
    return counts;
  }

  /** In milliseconds, over all answers. */
  longestResponse(): number {
    const answered = this.entries.filter(({ status }) => status !== 0);
    return answered.reduce((longest, entry) => Math.max(longest, entry.answered - entry.sent), 0);
  }
}
