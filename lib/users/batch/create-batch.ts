import { createdAndGone } from '../../idempotency/refusals.ts';
import { repeatUntilDone, type Statements } from '../../postgres/index.ts';
import type { Author } from '../change-recording.ts';
import {
  type CreatedItem,
  type IdempotentCreates,
  keyedValues,
  type Outcome,
} from '../idempotent-creates.ts';
import { ignoreTaken, type TakenValues } from '../taken-values.ts';
import { type BatchInsert, batchInserts, itemsIn } from './insert-items.ts';
import type { UserBatch } from './user-batch.ts';

type Results = readonly CreatedItem[];

export class UserBatches {
  readonly #inserts: ReturnType<typeof batchInserts>;
  readonly #keyedInserts: ReturnType<typeof batchInserts>;
  readonly #takenValues: TakenValues;
  readonly #idempotentCreates: IdempotentCreates;

  constructor(statements: Statements, takenValues: TakenValues, idempotentCreates: IdempotentCreates) {
    this.#inserts = batchInserts(statements, false);
    this.#keyedInserts = batchInserts(statements, true);
    this.#takenValues = takenValues;
    this.#idempotentCreates = idempotentCreates;
  }

  /**
   * Stores the items of a batch, and resolves with the result of each. With a key, a batch is carried out once.
   *
   * @throws {Problem} for an atomic batch conflict_error; for a known key idempotency_key_reused_error, idempotency_key_in_use_error and gone_error
   */
  async create(batch: UserBatch, author: Author, key?: string): Promise<Outcome<Results>> {
    const { items, mode } = batch;
    const given = { ...itemsIn(items.map(({ user }) => user)), ...author };
    if (key === undefined) return { created: (await this.#store(mode, given)) ?? [], isReplay: false };
    const outcome = await this.#idempotentCreates.carryOutOnce(
      { operation: 'createUsers', subject: author.actor, key },
      // The values of a refused item are those that were sent.
      [mode, ...items.map(({ user, sent }) => keyedValues(user ?? sent))],
      (fingerprint) => this.#store(mode, { ...given, ...fingerprint }),
    );
    if (mode === 'atomic' && outcome.created.includes('gone')) throw createdAndGone();
    return outcome;
  }

  /**
   * Sends a batch again if another writer has overtaken it. Refuses an atomic batch that cannot be stored. Undefined if
   * the key is known.
   */
  async #store(mode: UserBatch['mode'], given: BatchInsert): Promise<Results | undefined> {
    const inserts = given.key ? this.#keyedInserts : this.#inserts;
    const insertFree = given.external_id ? inserts.freeByAllValues : inserts.freeByEmail;
    const insert = mode === 'atomic' ? inserts.all : insertFree;
    const rows = await repeatUntilDone(async () => {
      const written = await insert.run(given).catch(ignoreTaken);
      if (!written && mode === 'atomic') await this.#takenValues.refuseTakenItems(given);
      return written;
    });
    if (rows.length === 0 && given.key) return undefined;
    const stored = new Map(rows.flatMap((row) => (row.id === null ? [] : [[row.id, row]])));
    return this.#nameTaken(
      given,
      given.id.map((id) => stored.get(id) ?? 'refused'),
    );
  }

  /** Finds what was taken of refused items. Without an external id, it was the email. */
  async #nameTaken(given: BatchInsert, results: Results): Promise<Results> {
    const isUnnamed = (result: CreatedItem, index: number) =>
      result === 'refused' && typeof given.external_id?.[index] === 'string';
    if (!results.some(isUnnamed)) return results;
    const found = await this.#takenValues.find(given);
    return results.map((result, index) => {
      const taken = found[index] ?? [];
      return result === 'refused' && taken.length > 0 ? { taken } : result;
    });
  }
}
