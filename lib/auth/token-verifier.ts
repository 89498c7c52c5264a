import { type CryptoKey, errors, type JWTHeaderParameters, type JWTPayload, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { unauthorized } from '../problem.ts';
import type { Algorithm } from '../setting-forms.ts';
import type { Settings } from '../settings.ts';
import { isStorable } from '../text.ts';
import { algorithmNamed, namesOf } from './algorithms.ts';
import { readTokenHeader } from './bearer-token.ts';
import type { KeySet } from './key-set.ts';
import { principalOf, type ServicePrincipal } from './principal.ts';

/** Proves a bearer token: gives its principal, at once when that is remembered, or rejects with a Problem (401 or 503). */
export type VerifyToken = (token: string) => ServicePrincipal | Promise<ServicePrincipal>;

/** How often a token had been verified before. */
export type TokenCacheCounts = { readonly hits: number; readonly misses: number };

type VerifiedToken = { readonly principal: ServicePrincipal; readonly exp: number };

/** In characters of token: some ten thousand tokens of common size. */
const CACHE_SIZE = 8 * 1024 * 1024;

/** The year 9999: a number above it is no date (RFC 7519 section 2, NumericDate). */
const LATEST_DATE = 253_402_300_799;

/** A principal is some times the size of its token; this bounds what the cache may hold in all. */
const CACHE_ENTRIES = 10_000;

/** The checks of RFC 7519 section 7.2 and RFC 8725, each accepted token remembered until it expires. */
export function createTokenVerifier(
  settings: Settings['oauth'],
  keySet: KeySet,
): { readonly verifyToken: VerifyToken; readonly counts: TokenCacheCounts } {
  const { issuer, audience, algorithms, clockTolerance, rolesClaim } = settings;
  const verified = new LRUCache<string, VerifiedToken>({
    max: CACHE_ENTRIES,
    maxSize: CACHE_SIZE,
    sizeCalculation: (_, token) => token.length,
  });
  const counts = { hits: 0, misses: 0 };
  const names = namesOf(algorithms);
  let generation = keySet.generation;

  function remembered(token: string): ServicePrincipal | undefined {
    forgetTokensOfOldKeys();
    const known = verified.get(token);
    return known && keySet.isUsable && !hasExpired(known.exp) ? known.principal : undefined;
  }

  /** A removed key takes with it what it had signed. */
  function forgetTokensOfOldKeys(): void {
    if (generation === keySet.generation) return;
    verified.clear();
    generation = keySet.generation;
  }

  const hasExpired = (exp: number) => exp <= Math.floor(Date.now() / 1000) - clockTolerance;

  async function prove(token: string): Promise<ServicePrincipal> {
    const header = acceptableHeader(readTokenHeader(token), algorithms);
    const keys = await keySet.keysFor(header);
    const judgedUnder = keySet.generation;
    const claims = await verifiedBy(keys, token);
    const principal = principalOf(claims, rolesClaim);
    forgetTokensOfOldKeys();
    if (judgedUnder === generation) verified.set(token, { principal, exp: claims.exp });
    return principal;
  }

  async function verifiedBy(keys: readonly CryptoKey[], token: string) {
    let refusal: unknown;
    for (const key of keys) {
      try {
        const { payload } = await jwtVerify(token, key, {
          issuer,
          audience,
          algorithms: names,
          clockTolerance,
        });
        return acceptableClaims(payload);
      } catch (error) {
        refusal = error;
        if (!(error instanceof errors.JWSSignatureVerificationFailed)) break;
      }
    }
    throw refusal instanceof errors.JOSEError || refusal === undefined
      ? unauthorized(refusal ? reasonOf(refusal) : 'no key of the identity provider fits the token')
      : refusal;
  }

  function verifyToken(token: string): ServicePrincipal | Promise<ServicePrincipal> {
    const refreshed = keySet.current();
    return refreshed ? refreshed.then(() => recall(token)) : recall(token);
  }

  /** What is remembered is given without a promise: most requests bring a token that was seen before. */
  function recall(token: string): ServicePrincipal | Promise<ServicePrincipal> {
    const known = remembered(token);
    if (known) counts.hits += 1;
    else counts.misses += 1;
    return known ?? prove(token);
  }

  return { verifyToken, counts };
}

/** jose names the claim that failed, and no value of it. */
const reasonOf = (error: errors.JOSEError) => `the token was refused: ${error.message}`;

function acceptableHeader(
  header: Readonly<Record<string, unknown>>,
  algorithms: readonly Algorithm[],
): JWTHeaderParameters {
  const { typ, kid } = header;
  const alg = algorithmNamed(header.alg, algorithms);
  if (!alg) throw unauthorized("the token's alg is not accepted");
  if (typ !== undefined && !isTokenType(typ)) throw unauthorized("the token's typ is not accepted");
  if (kid !== undefined && typeof kid !== 'string') throw unauthorized("the token's kid is not a string");
  if (Object.hasOwn(header, 'crit')) throw unauthorized('the token has critical header parameters');
  // RFC 7797 section 6: it has to be in crit.
  if (Object.hasOwn(header, 'b64')) throw unauthorized('the token has the header parameter b64');
  return { ...header, alg };
}

/** `typ` is a media type: in any case, and `application/` may be left out before it (RFC 7515 section 4.1.9). */
function isTokenType(typ: unknown): boolean {
  return typeof typ === 'string' && /^(?:application\/)?(?:at\+)?jwt$/i.test(typ);
}

/** What jose leaves to the application. */
function acceptableClaims(claims: JWTPayload): JWTPayload & { exp: number; sub: string } {
  const { exp, sub } = claims;
  if (exp === undefined || exp > LATEST_DATE) throw unauthorized('the token has no exp that is a date');
  if (typeof sub !== 'string' || sub === '') throw unauthorized('the token has no sub');
  if (!isStorable(sub)) throw unauthorized("the token's sub holds U+0000 or a lone surrogate");
  // RFC 8705 section 3 and RFC 9449 section 6: whoever cannot prove the binding must not use the token.
  if (Object.hasOwn(claims, 'cnf')) throw unauthorized('the token is bound to a key or a certificate (cnf)');
  return { ...claims, exp, sub };
}
