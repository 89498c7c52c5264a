import { AsyncResource } from 'node:async_hooks';
import { unavailable } from '../http/problem.ts';
import type { Settings } from '../settings/settings.ts';
import { CurrentKeys } from './current-keys.ts';
import { fetchKeys } from './fetch-keys.ts';
import type { TokenHeader } from './token-form.ts';
import type { UsableKey } from './usable-keys.ts';

/**
 * The first fetch loads Node's HTTP client, which takes 25 ms. A caller that waits for the start has its response before
 * that, within 30 ms on an idle machine. A token that arrives earlier does not wait for this time.
 */
const FIRST_FETCH_AFTER_MS = 100;
const MIN_PAUSE_MS = 2000;
const MAX_PAUSE_MS = 10_000;

/** Maximum pause between two fetches because of a signature that no known key verifies. */
const MAX_MISMATCH_PAUSE_MS = 60_000;

/** A function that is called after each refresh, with the number of failures in a row. */
export type OnRefresh = (outcome: 'succeeded' | 'failed', failures: number, cause?: unknown) => void;

/** A time by the wall clock and by the clock of the process, in milliseconds. */
const NEVER = { time: Number.NEGATIVE_INFINITY, uptime: Number.NEGATIVE_INFINITY };

/**
 * The identity provider's public keys: the last good set, and its refresh. Nothing is fetched before `start` or the
 * first token.
 */
export class KeySet {
  readonly current: CurrentKeys;
  /** Whether the keys are refreshed in the background. */
  isStarted = false;
  readonly refreshes = { succeeded: 0, failed: 0 };
  readonly #settings: Settings['oauth'];
  readonly #onRefresh: OnRefresh;
  readonly #now: () => number;
  readonly #stopped = new AbortController();
  /** A later fetch does not belong to a request, not even to the one that caused it. */
  readonly #refreshInBackground = AsyncResource.bind(() => void this.#refresh());
  #failures = 0;
  #lastFailure: unknown;
  /** Times of the last attempt: by the wall clock and by the clock of the process, in milliseconds. */
  #attemptedAt = NEVER;
  /** The fetches in a row that signatures without a key caused, and that brought the same set; and the last such attempt. */
  #mismatches = 0;
  #mismatchedAt = NEVER;
  /** Whether the next fetch is caused by such a signature. */
  #isForMismatch = false;
  #underWay: Promise<void> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires (`performance.now()`). */
  #dueAt = Number.POSITIVE_INFINITY;

  constructor(settings: Settings['oauth'], onRefresh: OnRefresh, now = Date.now) {
    this.#settings = settings;
    this.#onRefresh = onRefresh;
    this.#now = now;
    this.current = new CurrentKeys(now);
  }

  /** Seconds since the keys were last fetched. Before the first fetch: since this key set was created. */
  get age(): number {
    return Math.max(this.current.ageMs, 0) / 1000;
  }

  /** Starts the refresh in the background, a tenth of a second later. */
  start(): void {
    this.isStarted = true;
    this.#refreshIn(FIRST_FETCH_AFTER_MS);
  }

  /** Ends the refresh, also one in progress. */
  stop(): void {
    this.isStarted = false;
    clearTimeout(this.#timer);
    this.#stopped.abort();
  }

  /** Waits for an overdue refresh. Only a set that is not refreshed in the background needs it: its process may be frozen. */
  refreshIfOverdue(): Promise<void> | undefined {
    if (this.current.isEmpty) return undefined;
    const isOverdue = Math.abs(this.current.ageMs) > this.#settings.jwksRefresh * 1000;
    return isOverdue && this.#pauseLeft() <= 0 ? this.#refresh() : undefined;
  }

  /**
   * The keys that may have signed a token with this header: several may match without a `kid`, and none if the provider
   * does not have such a key.
   *
   * @throws {Problem} service_unavailable_error if that is unknown at the moment
   */
  async findKeys(header: TokenHeader): Promise<readonly UsableKey[]> {
    const { kid } = header;
    if (!this.current.isUsable || !this.current.knows(kid)) {
      // One fetch at a time, with a pause between two, so that a storm of unknown keys does not reach the provider.
      if (this.#underWay || this.#pauseLeft() <= 0) await this.#refresh();
      else this.#refreshWithin(this.#pauseLeft());
    }
    if (!this.current.isUsable)
      throw unavailable('the keys of the identity provider could not be fetched', this.#lastFailure);
    if (!this.current.knows(kid) && (this.#failures > 0 || this.#stopped.signal.aborted))
      throw unavailable("the token's key is not known and could not be fetched", this.#lastFailure);
    return this.current.matching(header);
  }

  /**
   * The keys that a fetch has changed, for a token with this header that none of `tried` has verified: a provider may give an
   * old `kid` to a new key, or none. Empty if nothing may be fetched yet. The keys are then fetched after the pause.
   */
  async findChangedKeys(header: TokenHeader, tried: readonly UsableKey[]): Promise<readonly UsableKey[]> {
    // For an unknown `kid`, `findKeys` has fetched what it may.
    if (!this.current.knows(header.kid)) return [];
    const isUnderWay = this.#underWay !== undefined;
    const mayFetch = isUnderWay || this.#mismatchPauseLeft() <= 0;
    if (mayFetch) {
      this.#isForMismatch ||= !isUnderWay;
      await this.#refresh();
    }
    const changed = this.current.matching(header).filter((key) => !tried.includes(key));
    // A fetch that had begun before may have missed the new key.
    if (changed.length === 0 && (isUnderWay || !mayFetch)) {
      this.#isForMismatch = true;
      this.#refreshWithin(this.#mismatchPauseLeft());
    }
    return changed;
  }

  #pauseLeft(): number {
    const pause = Math.min(MIN_PAUSE_MS * 2 ** Math.max(this.#failures - 1, 0), MAX_PAUSE_MS);
    return pause - this.#since(this.#attemptedAt);
  }

  /** A fetch for a signature keeps the pause of all fetches and, while such fetches bring nothing, a longer one. */
  #mismatchPauseLeft(): number {
    const pause = Math.min(MIN_PAUSE_MS * 2 ** (this.#mismatches - 1), MAX_MISMATCH_PAUSE_MS);
    return Math.max(this.#pauseLeft(), pause - this.#since(this.#mismatchedAt));
  }

  /** The wall clock may be set back, and the clock of a frozen process may stand still. The larger difference counts. */
  #since({ time, uptime }: typeof NEVER): number {
    return Math.max(this.#now() - time, performance.now() - uptime);
  }

  /** Never later than the refresh that is due. */
  #refreshWithin(milliseconds: number): void {
    this.#refreshIn(Math.min(milliseconds, this.#dueAt - performance.now()));
  }

  #refreshIn(milliseconds: number): void {
    clearTimeout(this.#timer);
    this.#dueAt = performance.now() + milliseconds;
    this.#timer = setTimeout(this.#refreshInBackground, Math.max(milliseconds, 0)).unref();
  }

  #refresh(): Promise<void> {
    clearTimeout(this.#timer);
    this.#dueAt = Number.POSITIVE_INFINITY;
    this.#underWay ??= this.#fetchAndAdopt().finally(() => {
      this.#underWay = undefined;
      if (this.isStarted)
        this.#refreshIn(this.#failures > 0 ? this.#pauseLeft() : this.#settings.jwksRefresh * 1000);
    });
    return this.#underWay;
  }

  async #fetchAndAdopt(): Promise<void> {
    this.#attemptedAt = { time: this.#now(), uptime: performance.now() };
    const isForMismatch = this.#isForMismatch;
    this.#isForMismatch = false;
    if (isForMismatch) this.#mismatchedAt = this.#attemptedAt;
    try {
      const hasChanged = this.current.adopt(await fetchKeys(this.#settings, this.#stopped.signal));
      if (hasChanged) this.#mismatches = 0;
      else if (isForMismatch) this.#mismatches += 1;
      this.#failures = 0;
      this.refreshes.succeeded += 1;
      this.#onRefresh('succeeded', 0);
    } catch (cause) {
      if (this.#stopped.signal.aborted) return;
      this.#failures += 1;
      this.#lastFailure = cause;
      this.refreshes.failed += 1;
      this.#onRefresh('failed', this.#failures, cause);
    }
  }
}
