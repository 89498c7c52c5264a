import type { Engine } from '../postgres/engines.ts';
import { ranOutOfTime, waitedFor } from '../postgres/faults.ts';
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

/**
 * The requests with a key of one instance. `remainingTime` is the number of milliseconds that the current request has for
 * statements.
 */
export function carryingOutOnce(
  remainingTime: () => number,
  onReplay: () => void,
  { limitsLockWaits }: Pick<Engine, 'limitsLockWaits'>,
): CarryOutOnce {
  const inTurn = createKeyQueue();

  return (fingerprint, { write, read }) =>
    inTurn(fingerprint.key.toString('base64'), remainingTime, async () => {
      // The time limit of the request's statements ends the loop.
      for (;;) {
        const created = await write().catch((fault) => refuseKeyInUse(fault, limitsLockWaits));
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

/**
 * The key is the cause only if the time limit was reached while another transaction held the key. If the engine does
 * not report what the statement waited for, the key may be the cause.
 */
function refuseKeyInUse(fault: unknown, isTold: boolean): never {
  const isKey = isTold ? waitedFor(fault, 'idempotency_keys') : ranOutOfTime(fault);
  throw isKey ? keyInUse(fault) : fault;
}
