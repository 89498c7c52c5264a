import { AsyncResource } from 'node:async_hooks';
import { unavailable } from '../http/problem.ts';
import type { Algorithm } from '../settings/setting-forms.ts';
import { fetchKeys } from './fetch-keys.ts';
import type { VerificationKey } from './signature.ts';
import type { TokenHeader } from './token-header.ts';
import type { UsableKey } from './usable-keys.ts';

const SECOND = 1000;
/**
 * In milliseconds. The first fetch loads Node's HTTP client, which takes 25 ms. A caller that waits for the start has
 * its response before that, within 30 ms on an idle machine. A token that arrives earlier does not wait for this time.
 */
const FIRST_AFTER = 100;
const COOLDOWN = 2 * SECOND;
const LONGEST_PAUSE = 10 * SECOND;
const LIFETIME = 24 * 3600 * SECOND;

/** The identity provider's public keys: the last good set, and its refresh. */
export type KeySet = {
  /**
   * The keys that may have signed a token with this header, without a promise if they are known. The list is empty if
   * the provider does not have such a key.
   *
   * @throws {Problem} service_unavailable_error if that is unknown at the moment
   */
  keysFor(header: TokenHeader): readonly VerificationKey[] | Promise<readonly VerificationKey[]>;
  /** Waits for an overdue refresh if none runs in the background, as in a process that was frozen. */
  current(): Promise<void> | undefined;
  /** Changes together with the keys. A token that was verified in another generation is not verified. */
  readonly generation: number;
  readonly isUsable: boolean;
  /** Seconds since the keys were last fetched. Before the first fetch: since this key set was created. */
  readonly age: number;
  /** Number of refreshes. */
  readonly refreshes: { readonly succeeded: number; readonly failed: number };
  /** Starts the refresh in the background, a tenth of a second later. */
  start(): void;
  /** Ends the refresh, also one in progress. */
  stop(): void;
};

type GoodSet = {
  readonly keys: readonly UsableKey[];
  readonly fingerprint: string;
  fetchedAt: number;
};

/** By the wall clock and by the clock of the process, in milliseconds. */
type Moment = { readonly time: number; readonly uptime: number };

/** Where a key set comes from, and what is called after a refresh. */
export type KeySetOptions = {
  readonly uri: string;
  /** The accepted algorithms. Keys for other algorithms are ignored. */
  readonly algorithms: readonly Algorithm[];
  /** Milliseconds between two refreshes in the background. */
  readonly refreshEvery: number;
  readonly onRefresh?: (outcome: 'succeeded' | 'failed', failures: number, cause?: unknown) => void;
  readonly now?: () => number;
};

/** Creates the key set of `uri`. Nothing is fetched before `start` or the first token. */
export function createKeySet({
  uri,
  algorithms,
  refreshEvery,
  onRefresh,
  now = Date.now,
}: KeySetOptions): KeySet {
  let good: GoodSet | undefined;
  const createdAt = now();
  let generation = 0;
  let failures = 0;
  const refreshes = { succeeded: 0, failed: 0 };
  let attempted: Moment = { time: Number.NEGATIVE_INFINITY, uptime: Number.NEGATIVE_INFINITY };
  let underWay: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;
  let isStarted = false;
  const stopped = new AbortController();

  const isUsable = () => good !== undefined && now() - good.fetchedAt < LIFETIME;
  const pause = () => Math.min(COOLDOWN * 2 ** Math.max(failures - 1, 0), LONGEST_PAUSE);
  // The wall clock may be set back, and the clock of a frozen process may stand still. The larger difference counts.
  const restLeft = () => pause() - Math.max(now() - attempted.time, performance.now() - attempted.uptime);

  function refresh(): Promise<void> {
    underWay ??= attempt().finally(() => {
      underWay = undefined;
      if (isStarted) refreshIn(failures > 0 ? restLeft() : refreshEvery);
    });
    return underWay;
  }

  async function attempt(): Promise<void> {
    attempted = { time: now(), uptime: performance.now() };
    try {
      adopt(await fetchKeys(uri, algorithms, stopped.signal));
      failures = 0;
      refreshes.succeeded += 1;
      onRefresh?.('succeeded', failures);
    } catch (cause) {
      if (stopped.signal.aborted) return;
      failures += 1;
      refreshes.failed += 1;
      onRefresh?.('failed', failures, cause);
    }
  }

  function adopt(keys: readonly UsableKey[]): void {
    const fingerprint = keys
      .map(({ jwk }) => JSON.stringify(jwk))
      .sort()
      .join();
    if (good?.fingerprint === fingerprint) {
      good.fetchedAt = now();
      return;
    }
    good = { keys, fingerprint, fetchedAt: now() };
    generation += 1;
  }

  /** A later fetch does not belong to a request, not even to the one that caused it. */
  const refreshInBackground = AsyncResource.bind(() => void refresh());

  function refreshIn(milliseconds: number): void {
    clearTimeout(timer);
    timer = setTimeout(refreshInBackground, Math.max(milliseconds, 0)).unref();
  }

  /** One fetch at a time, with a pause between two, so that a storm of unknown keys does not reach the provider. */
  async function refreshForUnknownKey(): Promise<void> {
    if (underWay || restLeft() <= 0) return refresh();
    refreshIn(restLeft());
  }

  function keysFor(header: TokenHeader): readonly VerificationKey[] | Promise<readonly VerificationKey[]> {
    return good && isUsable() && !isUnknown(header.kid) ? matching(good.keys, header) : fetchedFor(header);
  }

  async function fetchedFor(header: TokenHeader): Promise<readonly VerificationKey[]> {
    await refreshForUnknownKey();
    if (!good || !isUsable()) throw unavailable('the keys of the identity provider could not be fetched');
    if (isUnknown(header.kid)) {
      if (failures > 0 || stopped.signal.aborted)
        throw unavailable("the token's key is not known and could not be fetched");
      return [];
    }
    return matching(good.keys, header);
  }

  const isOverdue = () =>
    !isStarted && good !== undefined && Math.abs(now() - good.fetchedAt) > refreshEvery && restLeft() <= 0;
  const isUnknown = (kid: string | undefined) =>
    kid !== undefined && !good?.keys.some(({ jwk }) => jwk.kid === kid);

  return {
    keysFor,
    current: () => (isOverdue() ? refresh() : undefined),
    get generation() {
      return generation;
    },
    get isUsable() {
      return isUsable();
    },
    get age() {
      return Math.max(now() - (good?.fetchedAt ?? createdAt), 0) / SECOND;
    },
    refreshes,
    start() {
      isStarted = true;
      refreshIn(FIRST_AFTER);
    },
    stop() {
      isStarted = false;
      clearTimeout(timer);
      stopped.abort();
    },
  };
}

/** Without a `kid` several keys may match. Each is a candidate. */
function matching(keys: readonly UsableKey[], { alg, kid }: TokenHeader): readonly VerificationKey[] {
  return keys.flatMap(({ jwk, key }) =>
    key.algorithm === alg && (kid === undefined || jwk.kid === kid) ? [key] : [],
  );
}
