import { importJWK, type JWK } from 'jose';
import type { Algorithm } from '../setting-forms.ts';
import { algorithmOf } from './algorithms.ts';

const MIN_RSA_BITS = 2048;
const MIN_RSA_EXPONENT = 65_537n;

/**
 * The keys of a JWK Set (RFC 7517 section 5) that may verify a token: public, asymmetric, meant for signatures with
 * an accepted algorithm and strong enough (RFC 8725 section 3.2). All others are left out. Each key comes with the one
 * algorithm that it serves: without `alg` it would be taken for any that fits its type.
 */
export async function usableKeys(document: unknown, accepted: readonly Algorithm[]): Promise<readonly JWK[]> {
  const keys = (document as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) return [];
  const judged = await Promise.all(keys.map((key) => usable(key, accepted)));
  return judged.filter((key) => key !== undefined);
}

async function usable(key: unknown, accepted: readonly Algorithm[]): Promise<JWK | undefined> {
  if (typeof key !== 'object' || key === null || 'd' in key || 'k' in key) return undefined;
  const jwk = key as JWK;
  const alg = algorithmOf(jwk, accepted);
  if (!alg || !isForVerification(jwk)) return undefined;
  if (jwk.kty === 'RSA' && !isStrongRsa(jwk)) return undefined;
  return (await canBeImported(jwk, alg)) ? { ...jwk, alg } : undefined;
}

/** RFC 7517 sections 4.2 and 4.3. */
function isForVerification({ use, key_ops }: JWK): boolean {
  if (use !== undefined && use !== 'sig') return false;
  return key_ops === undefined || (Array.isArray(key_ops) && key_ops.includes('verify'));
}

function isStrongRsa({ n, e }: JWK): boolean {
  if (typeof n !== 'string' || typeof e !== 'string') return false;
  return bitLength(n) >= MIN_RSA_BITS && integerOf(e) >= MIN_RSA_EXPONENT;
}

const bitLength = (base64url: string): number => integerOf(base64url).toString(2).length;

const integerOf = (base64url: string): bigint =>
  BigInt(`0x0${Buffer.from(base64url, 'base64url').toString('hex')}`);

/** A point that is not on its curve, say, is found by the import alone. */
async function canBeImported(jwk: JWK, algorithm: Algorithm): Promise<boolean> {
  try {
    const key = await importJWK(jwk, algorithm);
    return !(key instanceof Uint8Array) && key.type === 'public';
  } catch {
    return false;
  }
}
