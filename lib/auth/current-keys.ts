import type { TokenHeader } from './token-form.ts';
import type { UsableKey } from './usable-keys.ts';

const LIFETIME_MS = 24 * 3600 * 1000;

/** The last good set of the identity provider's public keys. */
export class CurrentKeys {
  readonly #now: () => number;
  /** Empty before the first fetch. A key that has not changed stays the same object. */
  #keys: readonly UsableKey[] = [];
  /** The same, by the text of each key. */
  #byText: ReadonlyMap<string, UsableKey> = new Map();
  /** Time of the last good fetch. Before the first one: time at which this object was created. */
  #fetchedAt: number;

  constructor(now: () => number) {
    this.#now = now;
    this.#fetchedAt = now();
  }

  /** Whether a token that this key verified is still accepted. */
  accepts(key: UsableKey): boolean {
    return this.isUsable && this.#keys.includes(key);
  }

  get isUsable(): boolean {
    return this.#keys.length > 0 && this.#now() - this.#fetchedAt < LIFETIME_MS;
  }

  get isEmpty(): boolean {
    return this.#keys.length === 0;
  }

  /** In milliseconds, from the last good fetch. The clock may have been set back. */
  get ageMs(): number {
    return this.#now() - this.#fetchedAt;
  }

  knows(kid: string | undefined): boolean {
    return kid === undefined || this.#keys.some(({ jwk }) => jwk.kid === kid);
  }

  matching({ alg, kid }: TokenHeader): readonly UsableKey[] {
    return this.#keys.filter(
      ({ algorithm, jwk }) => algorithm === alg && (kid === undefined || jwk.kid === kid),
    );
  }

  /** Returns whether the set has changed. */
  adopt(keys: readonly UsableKey[]): boolean {
    const known = this.#byText;
    const texts = keys.map((key) => [JSON.stringify(key.jwk), key] as const);
    this.#byText = new Map(texts.map(([text, key]) => [text, known.get(text) ?? key]));
    this.#keys = [...this.#byText.values()];
    this.#fetchedAt = this.#now();
    return this.#byText.size !== known.size || texts.some(([text]) => !known.has(text));
  }
}
