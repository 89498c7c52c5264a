import { sql } from 'kysely';
import { type Fingerprint, fingerprint, type KeyedRequest } from '../idempotency/fingerprint.ts';
import { keptSince } from '../idempotency/key-table.ts';
import { keyInUse, keyReused } from '../idempotency/refusals.ts';
import { type PreparedStatement, repeatUntilDone, type Statements } from '../postgres/index.ts';
import { createdFields, type UniqueName } from './fields.ts';
import type { User } from './user.ts';
import { userColumns } from './user-statements.ts';

/**
 * In milliseconds. With less time left, a statement is not sent: a session may have to be opened for it. It is more than
 * `GRACE_MS` of the sender: a request that came together with one that has reached PostgreSQL's time limit fails like that.
 */
const MIN_ATTEMPT_MS = 300;

/** In milliseconds. The earlier request reaches its time limit first, and its fault shows what it waited for. */
const GRACE_MS = 100;

export type Outcome<Created> = { readonly created: Created; readonly isReplay: boolean };

/**
 * What became of an item of a create: its user; in a replay `gone` if it has since been deleted; `refused` or, if that
 * is known, the names of its `taken` values if it was never stored. Only the first response knows what was taken.
 */
export type CreatedItem = User | 'gone' | 'refused' | { readonly taken: readonly UniqueName[] };

type KeyRow = (User | { readonly id: null }) & {
  readonly request: Buffer;
  readonly created: string | null;
};

export function isUser(item: CreatedItem | undefined): item is User {
  return typeof item === 'object' && 'id' in item;
}

/**
 * The values of a user to create that identify it under an idempotency key. A field that a later version added is among
 * them only if it is set, so that the digests of requests without it stay the same. Null means not set. A value that is
 * not an object is itself what identifies it.
 */
export function keyedValues(user: unknown): unknown {
  if (typeof user !== 'object' || user === null) return user;
  const values: Readonly<Record<string, unknown>> = { ...user };
  return createdFields.flatMap(({ name, inKey }) => {
    const value = values[name];
    if (inKey === 'always') return [value];
    return value === undefined || value === null ? [] : [[name, value]];
  });
}

type CreatedItems = readonly CreatedItem[];

/** The creates with a key of one instance. The record of a key has one entry per item of its request, in their order. */
export class IdempotentCreates {
  replays = 0;
  readonly #statements: Statements;
  readonly #select: PreparedStatement<{ key: Buffer }, KeyRow>;
  /**
   * By key, the end of its last request. It resolves when all earlier ones have ended, too, with the fault of the
   * request if there is one.
   */
  readonly #ends = new Map<string, Promise<unknown>>();

  constructor(statements: Statements) {
    this.#statements = statements;
    this.#select = statements.ownSessionRead(
      'SELECT idempotency_keys',
      ({ key }) => sql`
        select held.request, item.created, ${userColumns}
        from idempotency_keys as held
        cross join lateral unnest(held.user_ids) with ordinality as item (created, position)
        left join users on users.id = item.created
        where held.key = ${key} and held.created_at > ${keptSince}
        order by item.position`,
    );
  }

  /**
   * Carries out a request with a key and these values once, however often it is sent. `write` claims the key and writes,
   * in one statement. It resolves with undefined if the key is known.
   *
   * @throws {Problem} idempotency_key_reused_error, idempotency_key_in_use_error
   */
  carryOutOnce(
    keyed: KeyedRequest,
    values: unknown,
    write: (fingerprint: Fingerprint) => Promise<CreatedItems | undefined>,
  ): Promise<Outcome<CreatedItems>> {
    const digests = fingerprint(keyed, values);
    const attempt = async () => {
      const created = await write(digests).catch((fault) => {
        // The key is the cause only if the time limit was reached while another transaction held the key.
        throw this.#statements.waitedFor(fault, 'idempotency_keys') ? keyInUse(fault) : fault;
      });
      if (created !== undefined) return { created, isReplay: false };
      const known = await this.#readRecord(digests.key);
      // The key has expired, and was deleted between the two statements.
      if (!known) return undefined;
      if (!known.request.equals(digests.request)) throw keyReused();
      this.replays += 1;
      return { created: known.created, isReplay: true };
    };
    return this.#runInOrder(digests.key.toString('base64'), () => repeatUntilDone(attempt));
  }

  /**
   * Runs the requests with the same key one after the other. Only one of them waits in PostgreSQL, so that together they
   * hold one connection. A request waits until its time limit, and is refused then.
   */
  async #runInOrder<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
    const before = this.#ends.get(key);
    const { promise: end, resolve: endWith } = Promise.withResolvers<unknown>();
    this.#ends.set(key, end);
    void end.then(() => this.#ends.get(key) === end && this.#ends.delete(key));
    const refusal = before && (await this.#waitFor(before));
    if (refusal) {
      // This request ends together with the one before it, and in the same way.
      endWith(before);
      throw refusal;
    }
    const result = task();
    endWith(result.then(() => undefined).catch((fault) => fault));
    return result;
  }

  /** Resolves with undefined if there is time for an attempt, otherwise with the refusal. */
  async #waitFor(before: Promise<unknown>): Promise<unknown> {
    const { promise: tooLate, resolve } = Promise.withResolvers<unknown>();
    const limit = Math.max(this.#statements.remainingTime(), 0) + GRACE_MS;
    const timer = setTimeout(resolve, limit);
    const fault = await Promise.race([before, tooLate]).finally(() => clearTimeout(timer));
    // If no time is left, this request fails with the fault of the earlier one, because it would meet the same.
    return this.#statements.remainingTime() > MIN_ATTEMPT_MS ? undefined : (fault ?? keyInUse());
  }

  /** Reads what the request of a key created, and its digest. Undefined if the key is not known, or no longer known. */
  async #readRecord(key: Buffer) {
    const rows = await this.#select.run({ key });
    return rows[0] && { request: rows[0].request, created: rows.map(readItem) };
  }
}

function readItem({ request: _, created, ...row }: KeyRow): CreatedItem {
  if (created === null) return 'refused';
  return row.id === null ? 'gone' : row;
}
