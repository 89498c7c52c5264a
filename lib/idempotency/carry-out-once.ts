import type { Statements } from '../postgres/index.ts';
import type { Fingerprint } from './fingerprint.ts';
import { createKeyQueue } from './key-queue.ts';
import { keyInUse, keyReused } from './refusals.ts';

/** The record of a key: the digest of its request, and what the request created. */
export type Known<Created> = { readonly request: Buffer; readonly created: Created };

/** The parts of a request with a key. */
export type KeyedWrite<Created> = {
  /** Claims the key and writes, in one statement; undefined if the key is known. */
  readonly write: () => Promise<Created | undefined>;
  /** Undefined if the key is not known, or no longer known. */
  readonly read: () => Promise<Known<Created> | undefined>;
};

/** What a request created, and whether this is a replay. */
export type Outcome<Created> = { readonly created: Created; readonly isReplay: boolean };

/** Carries out a request with a key once, however often it is sent. */
export type CarryOutOnce = <Created>(
  fingerprint: Fingerprint,
  keyed: KeyedWrite<Created>,
) => Promise<Outcome<Created>>;

/** The requests with a key of one instance. */
export function carryingOutOnce(statements: Statements, onReplay: () => void): CarryOutOnce {
  const inTurn = createKeyQueue();
  const remainingTime = () => statements.remainingTime();

  return (fingerprint, { write, read }) =>
    inTurn(fingerprint.key.toString('base64'), remainingTime, async () => {
      // The time limit of the request's statements ends the loop.
      for (;;) {
        const created = await write().catch((fault) => refuseKeyInUse(fault, statements));
        if (created !== undefined) return { created, isReplay: false };
        const known = await read();
        // The key has expired, and was deleted between the two statements.
        if (!known) continue;
        if (!known.request.equals(fingerprint.request)) throw keyReused();
        onReplay();
        return { created: known.created, isReplay: true };
      }
    });
}

/** The key is the cause only if the time limit was reached while another transaction held the key. */
function refuseKeyInUse(fault: unknown, statements: Statements): never {
  throw statements.waitedFor(fault, 'idempotency_keys') ? keyInUse(fault) : fault;
}
