import { errors, jwtVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { unauthorized } from '../http/problem.ts';
import type { Settings } from '../settings/settings.ts';
import { listNames } from './algorithm-names.ts';
import { demandClaims, hasExpectedClaims } from './claims.ts';
import type { KeySet } from './key-set.ts';
import { readPrincipal, type ServicePrincipal } from './principal.ts';
import { NO_PAYLOAD, readHeader, type TokenHeader } from './token-form.ts';
import type { UsableKey } from './usable-keys.ts';

/** A token that was verified by a key. */
export type VerifiedToken = {
  readonly principal: ServicePrincipal;
  readonly exp: number;
  readonly key: UsableKey;
};

/** Maximum total length of the remembered tokens in characters: about five thousand tokens of common size. */
const MAX_REMEMBERED_CHARACTERS = 4 * 1024 * 1024;

/** Maximum number of remembered tokens. It limits memory, because a principal is several times as large as its token. */
const MAX_REMEMBERED_TOKENS = 5000;

/** Verifies bearer tokens by the checks of RFC 7519 section 7.2 and RFC 8725, and remembers the accepted ones. */
export class TokenVerifier {
  readonly counts = { hits: 0, misses: 0 };
  readonly #settings: Settings['oauth'];
  readonly #keySet: KeySet;
  readonly #verified = new LRUCache<string, VerifiedToken>({
    max: MAX_REMEMBERED_TOKENS,
    maxSize: MAX_REMEMBERED_CHARACTERS,
    sizeCalculation: (_, token) => token.length,
  });

  constructor(settings: Settings['oauth'], keySet: KeySet) {
    this.#settings = settings;
    this.#keySet = keySet;
  }

  /**
   * The principal of a token, without a promise for a remembered one. `known` is what `recall` returned for this token.
   *
   * @throws {Problem} unauthorized_error, service_unavailable_error; a returned promise rejects with them
   */
  verify(token: string, known?: VerifiedToken): ServicePrincipal | Promise<ServicePrincipal> {
    const refreshed = this.#keySet.refreshIfOverdue();
    return refreshed
      ? refreshed.then(() => this.#acceptOrProve(token, known))
      : this.#acceptOrProve(token, known);
  }

  /** A token that was verified before, and that would be accepted again. */
  recall(token: string): VerifiedToken | undefined {
    const known = this.#verified.get(token);
    return known && this.#isAccepted(known) ? known : undefined;
  }

  #acceptOrProve(token: string, known?: VerifiedToken): ServicePrincipal | Promise<ServicePrincipal> {
    const accepted = known && this.#isAccepted(known) ? known : this.recall(token);
    if (accepted) this.counts.hits += 1;
    else this.counts.misses += 1;
    return accepted?.principal ?? this.#prove(token);
  }

  #isAccepted({ exp, key }: VerifiedToken): boolean {
    const hasExpired = exp <= Math.floor(Date.now() / 1000) - this.#settings.clockTolerance;
    return !hasExpired && this.#keySet.accepts(key);
  }

  async #prove(token: string): Promise<ServicePrincipal> {
    const header = readHeader(token, this.#settings.algorithms);
    const keys = await this.#keySet.findKeys(header);
    const verified =
      (await this.#verifyByOne(keys, token)) ?? (await this.#verifyByChanged(header, keys, token));
    if (!verified) {
      const reason = keys.length > 0 ? 'verifies the signature' : 'fits the token';
      throw unauthorized(`no key of the identity provider ${reason}`);
    }
    const { payload, key } = verified;
    const claims = demandClaims(payload);
    const principal = readPrincipal(claims, this.#settings.rolesClaim);
    this.#verified.set(token, { principal, exp: claims.exp, key });
    return principal;
  }

  /** A provider may have given an old `kid` to a new key, or none. */
  async #verifyByChanged(header: TokenHeader, tried: readonly UsableKey[], token: string) {
    if (!hasExpectedClaims(token, this.#settings)) return undefined;
    return this.#verifyByOne(await this.#keySet.findChangedKeys(header, tried), token);
  }

  /** Without a `kid` several keys may match, and jose takes one. Undefined if no key verifies the signature. */
  async #verifyByOne(keys: readonly UsableKey[], token: string) {
    const { issuer, clockTolerance } = this.#settings;
    const audience = [...this.#settings.audience];
    for (const key of keys) {
      try {
        const rules = { algorithms: [...listNames(key.algorithm)], issuer, audience, clockTolerance };
        const { payload } = await jwtVerify(token, key.imported, rules);
        return { payload, key };
      } catch (error) {
        const reason = findPayloadFault(error);
        if (reason !== undefined) throw unauthorized(reason);
      }
    }
    return undefined;
  }
}

/**
 * Why jose refused the payload of a token whose signature it had verified; undefined for every other error. The reason
 * names the claim, for the log, but not its value.
 */
function findPayloadFault(error: unknown): string | undefined {
  if (error instanceof errors.JWTExpired) return 'the token has expired: "exp"';
  if (error instanceof errors.JWTInvalid) return NO_PAYLOAD;
  if (!(error instanceof errors.JWTClaimValidationFailed)) return undefined;
  const isEarly = error.claim === 'nbf' && error.reason === 'check_failed';
  return isEarly ? 'the token is not valid yet: "nbf"' : (CLAIM_REASONS[error.claim] ?? error.message);
}

const CLAIM_REASONS: Readonly<Record<string, string>> = {
  iss: 'unexpected "iss"',
  aud: 'unexpected "aud"',
  exp: 'the token has no valid "exp"',
  nbf: '"nbf" is not a number',
  iat: '"iat" is not a number',
};
