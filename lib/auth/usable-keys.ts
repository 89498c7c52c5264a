import { importJWK, type JWK } from 'jose';
import { ALGORITHMS } from '../setting-forms.ts';

/** The algorithm to try an import with, for a key that does not name its own. */
const ALGORITHM_OF_CURVE: Readonly<Record<string, string>> = {
  'P-256': 'ES256',
  'P-384': 'ES384',
  'P-521': 'ES512',
  Ed25519: 'EdDSA',
};

const LEAST_RSA_BITS = 2048;
const LEAST_RSA_EXPONENT = 65_537n;

/**
 * The keys of a JWK Set (RFC 7517 section 5) that may verify a token: public, asymmetric, meant for
 * signatures and strong enough (RFC 8725 section 3.2). All others are left out.
 */
export async function usableKeys(document: unknown): Promise<readonly JWK[]> {
  const keys = (document as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) return [];
  const judged = await Promise.all(
    keys.map(async (key) => ((await isUsable(key)) ? (key as JWK) : undefined)),
  );
  return judged.filter((key) => key !== undefined);
}

async function isUsable(key: unknown): Promise<boolean> {
  if (typeof key !== 'object' || key === null || 'd' in key || 'k' in key) return false;
  const jwk = key as JWK;
  if (jwk.use !== undefined && jwk.use !== 'sig') return false;
  if (jwk.kty === 'RSA' && !isStrongRsa(jwk)) return false;
  const algorithm = jwk.alg ?? (jwk.kty === 'RSA' ? 'RS256' : ALGORITHM_OF_CURVE[String(jwk.crv)]);
  return isOfSignatures(algorithm) && (await canBeImported(jwk, algorithm));
}

/** A key for RSA-OAEP or ECDH-ES can be imported, too, though it verifies nothing. */
function isOfSignatures(algorithm: unknown): algorithm is string {
  return ALGORITHMS.some((name) => name === algorithm);
}

function isStrongRsa({ n, e }: JWK): boolean {
  if (typeof n !== 'string' || typeof e !== 'string') return false;
  return bitLength(n) >= LEAST_RSA_BITS && integerOf(e) >= LEAST_RSA_EXPONENT;
}

const bitLength = (base64url: string): number => integerOf(base64url).toString(2).length;

const integerOf = (base64url: string): bigint =>
  BigInt(`0x0${Buffer.from(base64url, 'base64url').toString('hex')}`);

/** A point that is not on its curve, say, is found by the import alone. */
async function canBeImported(jwk: JWK, algorithm: string): Promise<boolean> {
  try {
    const key = await importJWK(jwk, algorithm);
    return !(key instanceof Uint8Array) && key.type === 'public';
  } catch {
    return false;
  }
}
