import type { Author } from '../../changes/recording.ts';
import type { CarryOutOnce, Outcome } from '../../idempotency/carry-out-once.ts';
import { type Fingerprint, fingerprint } from '../../idempotency/fingerprint.ts';
import { createdAndGone } from '../../idempotency/refusals.ts';
import type { Statements } from '../../postgres/index.ts';
import type { CreatedItem } from '../keyed-creates.ts';
import { isTaken, refusingTakenValues } from '../taken-values.ts';
import { userIn } from '../user-row.ts';
import { type Items, insertingItems, itemsIn } from './insert-items.ts';
import { keyedValuesOf, type UserBatch } from './user-batch.ts';

type Given = Items & Author & Partial<Fingerprint>;
type Results = readonly CreatedItem[];

/** Stores the items of a batch, and resolves with the result of each. With a key, a batch is carried out once. */
export function creatingBatch(statements: Statements, carryOutOnce: CarryOutOnce<Results>) {
  const insertItems = insertingItems(statements);
  const { refuseRepeatedItems, refuseTakenItems, findTaken } = refusingTakenValues(statements);

  /**
   * Sends a batch again if another writer has overtaken it. Refuses an atomic batch that cannot be stored. Undefined if
   * the key is known.
   */
  async function store(mode: UserBatch['mode'], given: Given): Promise<Results | undefined> {
    const hasExternalIds = given.external_id.some((value) => value !== null);
    const selection = mode === 'atomic' ? 'all' : hasExternalIds ? 'free_values' : 'free_emails';
    // The time limit of the request's statements ends the loop.
    for (;;) {
      try {
        const rows = await insertItems(selection, given);
        if (rows.length === 0 && given.key) return undefined;
        const stored = new Map(rows.flatMap((row) => (row.id === null ? [] : [[row.id, userIn(row)]])));
        return await nameTaken(
          given,
          given.id.map((id) => stored.get(id) ?? 'refused'),
        );
      } catch (fault) {
        if (!isTaken(fault)) throw fault;
        if (mode === 'atomic') await refuseTakenItems(given);
      }
    }
  }

  /** Finds what was taken of refused items. Without an external id, it was the email. */
  async function nameTaken(given: Given, results: Results): Promise<Results> {
    const isNamed = results.some(
      (result, index) => result === 'refused' && given.external_id[index] !== null,
    );
    if (!isNamed) return results;
    const found = await findTaken(given);
    return results.map((result, index) => {
      const taken = found[index] ?? [];
      return result === 'refused' && taken.length > 0 ? { taken } : result;
    });
  }

  return async (batch: UserBatch, author: Author, key?: string): Promise<Outcome<Results>> => {
    const { items, mode } = batch;
    const given = { ...itemsIn(items.map(({ user }) => user)), ...author };
    // Refused whatever the state of the key.
    if (mode === 'atomic') await refuseRepeatedItems(given);
    if (key === undefined) return { created: (await store(mode, given)) ?? [], isReplay: false };
    const request = fingerprint(
      { operation: 'createUsers', subject: author.actor, key },
      keyedValuesOf(batch),
    );
    const outcome = await carryOutOnce(request, () => store(mode, { ...given, ...request }));
    if (mode === 'atomic' && outcome.created.includes('gone')) throw createdAndGone();
    return outcome;
  };
}
