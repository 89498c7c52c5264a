import { LRUCache } from 'lru-cache';
import { unauthorized } from '../http/problem.ts';
import type { Settings } from '../settings/settings.ts';
import { acceptableClaims, hasExpired } from './claims.ts';
import { type CompactToken, jsonIn, readCompact } from './compact-token.ts';
import type { KeySet } from './key-set.ts';
import { principalOf, type ServicePrincipal } from './principal.ts';
import type { VerificationKey } from './signature.ts';
import { readingTokenHeaders } from './token-header.ts';

/**
 * Verifies a bearer token and returns its principal, without a promise unless keys must be fetched first.
 *
 * @throws {Problem} unauthorized_error, service_unavailable_error; a returned promise rejects with them
 */
export type VerifyToken = (token: string) => ServicePrincipal | Promise<ServicePrincipal>;

/** How often a token was, and was not, in the cache. */
export type TokenCacheCounts = { readonly hits: number; readonly misses: number };

type VerifiedToken = { readonly principal: ServicePrincipal; readonly exp: number };

/** Maximum total length of the remembered tokens in characters: about five thousand tokens of common size. */
const CACHE_SIZE = 4 * 1024 * 1024;

/**
 * Maximum number of remembered tokens. A principal is several times as large as its token, so this limits the memory of
 * the cache.
 */
const CACHE_ENTRIES = 5000;

/**
 * Creates the verifier with the checks of RFC 7519 section 7.2 and RFC 8725. Each accepted token is remembered until it
 * expires.
 */
export function createTokenVerifier(
  settings: Settings['oauth'],
  keySet: KeySet,
): { readonly verifyToken: VerifyToken; readonly counts: TokenCacheCounts } {
  const { algorithms, clockTolerance, rolesClaim } = settings;
  const readHeader = readingTokenHeaders(algorithms);
  const verified = new LRUCache<string, VerifiedToken>({
    max: CACHE_ENTRIES,
    maxSize: CACHE_SIZE,
    sizeCalculation: (_, token) => token.length,
  });
  const counts = { hits: 0, misses: 0 };
  let generation = keySet.generation;

  function remembered(token: string): ServicePrincipal | undefined {
    forgetTokensOfOldKeys();
    const known = verified.get(token);
    return known && keySet.isUsable && !hasExpired(known.exp, clockTolerance) ? known.principal : undefined;
  }

  /** A token that was verified by a removed key must be refused. */
  function forgetTokensOfOldKeys(): void {
    if (generation === keySet.generation) return;
    verified.clear();
    generation = keySet.generation;
  }

  function prove(token: string): ServicePrincipal | Promise<ServicePrincipal> {
    const compact = readCompact(token);
    const keys = keySet.keysFor(readHeader(compact.header));
    if (keys instanceof Promise) return keys.then((fetched) => accept(token, compact, fetched));
    return accept(token, compact, keys);
  }

  /** Called without a pause after the keys were read, so that they belong to the current generation. */
  function accept(
    token: string,
    { payload, signed, signature }: CompactToken,
    keys: readonly VerificationKey[],
  ): ServicePrincipal {
    if (keys.length === 0) throw unauthorized('no key of the identity provider fits the token');
    if (!keys.some((key) => key.isSigner(signed, signature)))
      throw unauthorized('no key of the identity provider verifies the signature');
    const claims = acceptableClaims(jsonIn(payload), settings);
    const principal = principalOf(claims, rolesClaim);
    forgetTokensOfOldKeys();
    verified.set(token, { principal, exp: claims.exp });
    return principal;
  }

  function verifyToken(token: string): ServicePrincipal | Promise<ServicePrincipal> {
    const refreshed = keySet.current();
    return refreshed ? refreshed.then(() => recall(token)) : recall(token);
  }

  /** A remembered token costs no promise, because most requests have a token that was seen before. */
  function recall(token: string): ServicePrincipal | Promise<ServicePrincipal> {
    const known = remembered(token);
    if (known) counts.hits += 1;
    else counts.misses += 1;
    return known ?? prove(token);
  }

  return { verifyToken, counts };
}
