import type { JWK } from 'jose';
import type { Algorithm } from '../settings/setting-forms.ts';

/** Type and, if it has one, curve of the keys that an algorithm uses (RFC 7518 section 3.1, RFC 8037). */
const KEYS: Readonly<Record<Algorithm, string>> = {
  RS256: 'RSA',
  RS384: 'RSA',
  RS512: 'RSA',
  PS256: 'RSA',
  PS384: 'RSA',
  PS512: 'RSA',
  ES256: 'EC P-256',
  ES384: 'EC P-384',
  ES512: 'EC P-521',
  EdDSA: 'OKP Ed25519',
};

/**
 * The accepted algorithm with this name, in a key or in a token; undefined if it is not accepted. `Ed25519` (RFC 9864
 * section 2.2) is another name of `EdDSA`.
 */
export function algorithmNamed(name: unknown, accepted: readonly Algorithm[]): Algorithm | undefined {
  const canonical = name === 'Ed25519' ? 'EdDSA' : name;
  return accepted.find((algorithm) => algorithm === canonical);
}

/**
 * The one algorithm that a key serves: its own or, if it names none, the first accepted one that fits it. Undefined if
 * that algorithm is not accepted or does not fit.
 */
export function algorithmOf(key: JWK, accepted: readonly Algorithm[]): Algorithm | undefined {
  const type = key.kty === 'RSA' ? key.kty : `${key.kty} ${key.crv}`;
  const fits = (algorithm: Algorithm) => KEYS[algorithm] === type;
  // Some providers write null instead of leaving the member out.
  if (key.alg == null) return accepted.find(fits);
  const own = algorithmNamed(key.alg, accepted);
  return own && fits(own) ? own : undefined;
}
