import type { Statements } from '../postgres/index.ts';
import { type Fingerprint, fingerprint, type KeyedRequest } from './fingerprint.ts';
import { KeyQueue } from './key-queue.ts';
import { keyInUse, keyReused } from './refusals.ts';

/** The record of a key: the digest of its request, and what the request created. */
type KeyRecord<Created> = { readonly request: Buffer; readonly created: Created };

/** What a request created, and whether this is a replay. */
export type Outcome<Created> = { readonly created: Created; readonly isReplay: boolean };

/** The requests with a key of one instance. */
export abstract class KeyedRequests<Created> {
  readonly #statements: Statements;
  readonly #queue: KeyQueue;
  #replays = 0;

  constructor(statements: Statements) {
    this.#statements = statements;
    this.#queue = new KeyQueue(statements);
  }

  /** Number of replayed requests. */
  get replays(): number {
    return this.#replays;
  }

  /** Reads the record of a key; undefined if the key is not known, or no longer known. */
  protected abstract readRecord(key: Buffer): Promise<KeyRecord<Created> | undefined>;

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
    return this.#queue.run(digests.key.toString('base64'), async () => {
      // The time limit of the request's statements ends the loop.
      for (;;) {
        const created = await write(digests).catch((fault) => this.#refuseKeyInUse(fault));
        if (created !== undefined) return { created, isReplay: false };
        const known = await this.readRecord(digests.key);
        // The key has expired, and was deleted between the two statements.
        if (!known) continue;
        if (!known.request.equals(digests.request)) throw keyReused();
        this.#replays += 1;
        return { created: known.created, isReplay: true };
      }
    });
  }

  /** The key is the cause only if the time limit was reached while another transaction held the key. */
  #refuseKeyInUse(fault: unknown): never {
    throw this.#statements.waitedFor(fault, 'idempotency_keys') ? keyInUse(fault) : fault;
  }
}
