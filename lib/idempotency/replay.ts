import { repeatUntilDone, type Statements } from '../postgres/index.ts';
import { type Fingerprint, fingerprint, type KeyedRequest } from './fingerprint.ts';
import { keyInUse, keyReused } from './refusals.ts';

/** In milliseconds. With less time left, a statement is not sent. */
const TOO_LATE = 20;

/** In milliseconds. The earlier request reaches its time limit first, and its fault shows what it waited for. */
const GRACE = 100;

/** What a request created, and whether this is a replay. */
export type Outcome<Created> = { readonly created: Created; readonly isReplay: boolean };

/** The requests with a key of one instance. */
export abstract class KeyedRequests<Created> {
  replays = 0;
  readonly #statements: Statements;
  /**
   * By key, the end of its last request. It resolves when all earlier ones have ended, too, with the fault of the
   * request if there is one.
   */
  readonly #ends = new Map<string, Promise<unknown>>();

  constructor(statements: Statements) {
    this.#statements = statements;
  }

  /** Reads what the request of a key created, and its digest. Undefined if the key is not known, or no longer known. */
  protected abstract readRecord(key: Buffer): Promise<{ request: Buffer; created: Created } | undefined>;

  /**
   * Carries out a request with a key and these values once, however often it is sent. `write` claims the key and writes,
   * in one statement. It resolves with undefined if the key is known.
   *
   * @throws {Problem} idempotency_key_reused_error, idempotency_key_in_use_error
   */
  carryOutOnce(
    keyed: KeyedRequest,
    values: unknown,
    write: (fingerprint: Fingerprint) => Promise<Created | undefined>,
  ): Promise<Outcome<Created>> {
    const digests = fingerprint(keyed, values);
    const attempt = async () => {
      const created = await write(digests).catch((fault) => {
        // The key is the cause only if the time limit was reached while another transaction held the key.
        throw this.#statements.waitedFor(fault, 'idempotency_keys') ? keyInUse(fault) : fault;
      });
      if (created !== undefined) return { created, isReplay: false };
      const known = await this.readRecord(digests.key);
      // The key has expired, and was deleted between the two statements.
      if (!known) return undefined;
      if (!known.request.equals(digests.request)) throw keyReused();
      this.replays += 1;
      return { created: known.created, isReplay: true };
    };
    return this.#runInTurn(digests.key.toString('base64'), () => repeatUntilDone(attempt));
  }

  /**
   * Runs the requests with the same key one after the other. Only one of them waits in PostgreSQL, so that together they
   * hold one connection. A request waits until its time limit, and is refused then.
   */
  async #runInTurn<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
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
    const limit = Math.max(this.#statements.remainingTime(), 0) + GRACE;
    const timer = setTimeout(resolve, limit);
    const fault = await Promise.race([before, tooLate]).finally(() => clearTimeout(timer));
    // If no time is left, this request fails with the fault of the earlier one, because it would meet the same.
    return this.#statements.remainingTime() > TOO_LATE ? undefined : (fault ?? keyInUse());
  }
}
