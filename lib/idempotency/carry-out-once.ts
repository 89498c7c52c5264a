import type { Engine } from '../database/engines.ts';
import { ranOutOfTime, waitedFor } from '../database/faults.ts';
import type { Fingerprint } from './fingerprint.ts';
import { keyInUse, keyReused } from './refusals.ts';
import { createTurns } from './turns.ts';

/** What is known under a key: the digest of its request, and what that created. */
export type Known<Created> = { readonly request: Buffer; readonly created: Created };

/** What a keyed request consists of. */
export type KeyedWrite<Created> = {
  /** Claims the key and writes, in one statement; undefined when the key is known. */
  readonly write: () => Promise<Created | undefined>;
  /** Undefined when nothing is known under the key, or no more. */
  readonly read: () => Promise<Known<Created> | undefined>;
};

/** What a request has created, and whether that was when it was sent before. */
export type Outcome<Created> = { readonly created: Created; readonly isReplay: boolean };

/** Carries out a request under a key once, however often it is sent. */
export type CarryOutOnce = <Created>(
  fingerprint: Fingerprint,
  keyed: KeyedWrite<Created>,
) => Promise<Outcome<Created>>;

/** The keyed requests of one instance. `timeLeft` are the milliseconds that the current request has for statements. */
export function carryingOutOnce(
  timeLeft: () => number,
  onReplay: () => void,
  { limitsLockWaits }: Pick<Engine, 'limitsLockWaits'>,
): CarryOutOnce {
  const inTurn = createTurns();

  return (fingerprint, { write, read }) =>
    inTurn(fingerprint.key.toString('base64'), timeLeft, async () => {
      // The time of the request's statements ends it.
      for (;;) {
        const created = await write().catch((fault) => refuseKeyInUse(fault, limitsLockWaits));
        if (created !== undefined) return { created, isReplay: false };
        const known = await read();
        // Too old, and cleaned away between the two statements.
        if (!known) continue;
        if (!known.request.equals(fingerprint.request)) throw keyReused();
        onReplay();
        return { created: known.created, isReplay: true };
      }
    });
}

/**
 * Time ran out while another transaction held the key: of all other faults the key is not the cause. Where the engine does
 * not tell what was waited for, it may be.
 */
function refuseKeyInUse(fault: unknown, isTold: boolean): never {
  const isKey = isTold ? waitedFor(fault, 'idempotency_keys') : ranOutOfTime(fault);
  throw isKey ? keyInUse(fault) : fault;
}
