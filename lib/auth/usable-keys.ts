import { KeyObject } from 'node:crypto';
import { type CryptoKey, importJWK, type JWK } from 'jose';
import type { Algorithm } from '../settings/setting-forms.ts';
import { isNameOf } from './algorithm-names.ts';

/** A key of the provider: as published, except that `alg` is its one algorithm; and the same key, imported for it. */
export type UsableKey = { readonly jwk: JWK; readonly algorithm: Algorithm; readonly imported: CryptoKey };

const MIN_RSA_BITS = 2048;
const MIN_RSA_EXPONENT = 65_537n;

/** OpenSSL does not verify with larger keys. */
const MAX_RSA_BITS = 16_384;
const MAX_RSA_EXPONENT = 2n ** 64n - 1n;

/**
 * Imports the keys of a JWK Set (RFC 7517 section 5) that may verify a token: public, asymmetric, meant for signatures
 * with an accepted algorithm, and strong enough (RFC 8725 section 3.2). All other keys are left out.
 */
export async function importUsableKeys(
  document: unknown,
  accepted: readonly Algorithm[],
): Promise<readonly UsableKey[]> {
  const keys = (document as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(keys)) return [];
  const imported = await Promise.all(keys.map((key) => importUsableKey(key, accepted)));
  return imported.filter((key) => key !== undefined);
}

/** A key serves one algorithm: its own or, if it names none, the first accepted one that fits its type and curve. */
async function importUsableKey(
  published: unknown,
  accepted: readonly Algorithm[],
): Promise<UsableKey | undefined> {
  const key = normalized(published);
  if (!isForVerification(key)) return undefined;
  for (const algorithm of accepted) {
    if (key.alg !== undefined && !isNameOf(algorithm, key.alg)) continue;
    const imported = await importKey(key, algorithm);
    if (imported) return { jwk: { ...key, alg: algorithm }, algorithm, imported };
  }
  return undefined;
}

/** Some providers write null instead of leaving a member out. The order of members means nothing. */
function normalized(published: unknown): unknown {
  const members = Object.entries(published ?? {}).filter(([, value]) => value !== null);
  return Object.fromEntries(members.sort(([one], [other]) => (one < other ? -1 : 1)));
}

/** A public key for signatures (RFC 7517 sections 4.2 and 4.3). */
function isForVerification(value: unknown): value is JWK {
  if (typeof value !== 'object' || value === null || 'd' in value || 'k' in value) return false;
  const { use, key_ops }: JWK = value;
  if (use !== undefined && use !== 'sig') return false;
  return key_ops === undefined || (Array.isArray(key_ops) && key_ops.includes('verify'));
}

/** Undefined for a key of another type or curve, and for a key with a fault, for example a point that is not on its curve. */
async function importKey(jwk: JWK, algorithm: Algorithm): Promise<CryptoKey | undefined> {
  try {
    const key = await importJWK({ ...jwk, key_ops: ['verify'] }, algorithm, { extractable: true });
    return key instanceof Uint8Array || key.type !== 'public' || !isStrong(key) ? undefined : key;
  } catch {
    return undefined;
  }
}

function isStrong(key: CryptoKey): boolean {
  const { modulusLength: bits, publicExponent: exponent } = KeyObject.from(key).asymmetricKeyDetails ?? {};
  if (bits === undefined || exponent === undefined) return true;
  const isLarge = bits >= MIN_RSA_BITS && exponent >= MIN_RSA_EXPONENT;
  return isLarge && bits <= MAX_RSA_BITS && exponent <= MAX_RSA_EXPONENT;
}
