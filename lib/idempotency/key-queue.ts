import type { Statements } from '../postgres/index.ts';
import { keyInUse } from './refusals.ts';

/** In milliseconds. With less time left, a statement is not sent. */
const TOO_LATE = 20;

/** In milliseconds. The earlier request reaches its time limit first, and its fault shows what it waited for. */
const GRACE = 100;

/**
 * Runs the requests of one instance with the same key one after the other. Only one of them waits in PostgreSQL, so
 * that together they hold one connection. A request waits until its time limit, and is refused then.
 */
export class KeyQueue {
  readonly #statements: Pick<Statements, 'remainingTime'>;
  /**
   * By key, the end of its last request. It resolves when all earlier ones have ended, too, with the fault of the
   * request if there is one.
   */
  readonly #ends = new Map<string, Promise<unknown>>();

  constructor(statements: Pick<Statements, 'remainingTime'>) {
    this.#statements = statements;
  }

  async run<Result>(key: string, task: () => Promise<Result>): Promise<Result> {
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
    const result = (async () => task())();
    endWith(result.then(() => undefined).catch((fault) => fault));
    return result;
  }

  /** Resolves with undefined if there is time for an attempt, otherwise with the refusal. */
  async #waitFor(before: Promise<unknown>): Promise<unknown> {
    const { promise: tooLate, resolve } = Promise.withResolvers<unknown>();
    const limit = Math.max(this.#statements.remainingTime(), 0) + GRACE;
    const timer = setTimeout(() => resolve(keyInUse()), limit);
    const fault = await Promise.race([before, tooLate]).finally(() => clearTimeout(timer));
    // If no time is left, this request fails with the fault of the earlier one, because it would meet the same.
    return this.#statements.remainingTime() > TOO_LATE ? undefined : (fault ?? keyInUse());
  }
}
