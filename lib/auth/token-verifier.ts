import { compactVerify } from 'jose';
import { LRUCache } from 'lru-cache';
import { unauthorized } from '../http/problem.ts';
import type { Settings } from '../settings/settings.ts';
import { listNames } from './algorithm-names.ts';
import { expiryMs, hasExpectedClaims, readClaims } from './claims.ts';
import type { KeySet } from './key-set.ts';
import { readPrincipal, type ServicePrincipal } from './principal.ts';
import { readHeader, type TokenHeader } from './token-form.ts';
import type { UsableKey } from './usable-keys.ts';

type VerifiedToken = {
  readonly principal: ServicePrincipal;
  /** In milliseconds since 1970. */
  readonly expiresAt: number;
  readonly key: UsableKey;
};

/** Maximum total length of the remembered tokens in characters: about five thousand tokens of common size. */
const MAX_REMEMBERED_CHARACTERS = 4 * 1024 * 1024;

/** Maximum number of remembered tokens. It limits memory, because a principal is several times as large as its token. */
const MAX_REMEMBERED_TOKENS = 5000;

/** Verifies bearer tokens by the checks of RFC 7519 section 7.2 and RFC 8725, and remembers the accepted ones. */
export class TokenVerifier {
  readonly lookups = { hit: 0, miss: 0 };
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
   * The principal of a token, without a promise for a remembered one.
   *
   * @throws {Problem} unauthorized_error, service_unavailable_error; a returned promise rejects with them
   */
  verify(token: string): ServicePrincipal | Promise<ServicePrincipal> {
    const refreshed = this.#keySet.isStarted ? undefined : this.#keySet.refreshIfOverdue();
    return refreshed ? refreshed.then(() => this.#recallOrProve(token)) : this.#recallOrProve(token);
  }

  /** The principal of a token that was verified before, and that would be accepted again. */
  recall(token: string): ServicePrincipal | undefined {
    const known = this.#verified.get(token);
    const isAccepted = known && Date.now() < known.expiresAt && this.#keySet.current.accepts(known.key);
    return isAccepted ? known.principal : undefined;
  }

  #recallOrProve(token: string): ServicePrincipal | Promise<ServicePrincipal> {
    const principal = this.recall(token);
    this.lookups[principal ? 'hit' : 'miss'] += 1;
    return principal ?? this.#prove(token);
  }

  async #prove(token: string): Promise<ServicePrincipal> {
    const header = readHeader(token, this.#settings.algorithms);
    const keys = await this.#keySet.findKeys(header);
    const key = (await findSigner(keys, token)) ?? (await this.#findChangedSigner(header, keys, token));
    if (!key) {
      const reason = keys.length > 0 ? 'verifies the signature' : 'fits the token';
      throw unauthorized(`no key of the identity provider ${reason}`);
    }
    const claims = readClaims(token, this.#settings);
    const principal = readPrincipal(claims, this.#settings.rolesClaim);
    this.#verified.set(token, { principal, expiresAt: expiryMs(claims, this.#settings), key });
    return principal;
  }

  /** A provider may have given an old `kid` to a new key, or none. */
  async #findChangedSigner(header: TokenHeader, tried: readonly UsableKey[], token: string) {
    if (!hasExpectedClaims(token, this.#settings)) return undefined;
    return findSigner(await this.#keySet.findChangedKeys(header, tried), token);
  }
}

/** The key that verifies the signature of a token. Without a `kid` several keys may match, and jose takes one. */
async function findSigner(keys: readonly UsableKey[], token: string): Promise<UsableKey | undefined> {
  for (const key of keys) {
    try {
      await compactVerify(token, key.imported, { algorithms: [...listNames(key.algorithm)] });
      return key;
    } catch {
      // Another key may verify it.
    }
  }
  return undefined;
}
