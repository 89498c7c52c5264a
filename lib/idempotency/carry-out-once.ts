import type { Statements } from '../postgres/index.ts';
import type { Fingerprint } from './fingerprint.ts';
import { createKeyQueue } from './key-queue.ts';
import { keyInUse, keyReused } from './refusals.ts';

/** The record of a key: the digest of its request, and what the request created. */
export type Known<Created> = { readonly request: Buffer; readonly created: Created };

/** What a request created, and whether this is a replay. */
export type Outcome<Created> = { readonly created: Created; readonly isReplay: boolean };

/**
 * Carries out a request with a key once, however often it is sent. `write` claims the key and writes, in one statement.
 * It resolves with undefined if the key is known.
 */
export type CarryOutOnce<Created> = (
  fingerprint: Fingerprint,
  write: () => Promise<Created | undefined>,
) => Promise<Outcome<Created>>;

type Options<Created> = {
  /** Reads the record of a key; undefined if the key is not known, or no longer known. */
  readonly read: (key: Buffer) => Promise<Known<Created> | undefined>;
  /** Is called for each replayed request. */
  readonly onReplay: () => void;
};

/** The requests with a key of one instance. */
export function carryingOutOnce<Created>(
  statements: Statements,
  { read, onReplay }: Options<Created>,
): CarryOutOnce<Created> {
  const inTurn = createKeyQueue(() => statements.remainingTime());

  return ({ key, request }, write) =>
    inTurn(key.toString('base64'), async () => {
      // The time limit of the request's statements ends the loop.
      for (;;) {
        const created = await write().catch((fault) => refuseKeyInUse(fault, statements));
        if (created !== undefined) return { created, isReplay: false };
        const known = await read(key);
        // The key has expired, and was deleted between the two statements.
        if (!known) continue;
        if (!known.request.equals(request)) throw keyReused();
        onReplay();
        return { created: known.created, isReplay: true };
      }
    });
}

/** The key is the cause only if the time limit was reached while another transaction held the key. */
function refuseKeyInUse(fault: unknown, statements: Statements): never {
  throw statements.waitedFor(fault, 'idempotency_keys') ? keyInUse(fault) : fault;
}
