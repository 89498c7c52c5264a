import { constants, type KeyObject, verify } from 'node:crypto';
import type { Algorithm } from '../settings/setting-forms.ts';

/** A public key, ready for its one algorithm. */
export type VerificationKey = {
  readonly algorithm: Algorithm;
  /** Whether the private key of this public key made the signature of these bytes. */
  isSigner(signed: Buffer, signature: Buffer): boolean;
};

/** How Node's crypto verifies an algorithm (RFC 7518 section 3.1, RFC 8037), and the length of an ECDSA signature. */
type Verification = {
  readonly digest: string | null;
  readonly options?: {
    readonly padding?: number;
    readonly saltLength?: number;
    readonly dsaEncoding?: 'ieee-p1363';
  };
  readonly length?: number;
};

const pkcs1 = (digest: string): Verification => ({
  digest,
  options: { padding: constants.RSA_PKCS1_PADDING },
});
const pss = (digest: string): Verification => ({
  digest,
  options: { padding: constants.RSA_PKCS1_PSS_PADDING, saltLength: constants.RSA_PSS_SALTLEN_DIGEST },
});
const ecdsa = (digest: string, length: number): Verification => ({
  digest,
  options: { dsaEncoding: 'ieee-p1363' },
  length,
});

const VERIFICATIONS: Readonly<Record<Algorithm, Verification>> = {
  RS256: pkcs1('sha256'),
  RS384: pkcs1('sha384'),
  RS512: pkcs1('sha512'),
  PS256: pss('sha256'),
  PS384: pss('sha384'),
  PS512: pss('sha512'),
  ES256: ecdsa('sha256', 64),
  ES384: ecdsa('sha384', 96),
  ES512: ecdsa('sha512', 132),
  EdDSA: { digest: null, length: 64 },
};

/**
 * Verifies by Node's crypto, without a promise. WebCrypto, which jose uses, takes a thread and five promises, which
 * cost a fresh token a sixth more of the server's time. The options are members of the key itself, where Node also
 * reads them. An object around the key makes Node catch two errors before it recognizes the options, which takes as
 * long as RS256.
 */
export function verificationKey(publicKey: KeyObject, algorithm: Algorithm): VerificationKey {
  const { digest, options, length } = VERIFICATIONS[algorithm];
  const key = Object.assign(publicKey, options);
  return {
    algorithm,
    isSigner(signed, signature) {
      if (length !== undefined && signature.length !== length) return false;
      try {
        return verify(digest, signed, key, signature);
      } catch {
        // If OpenSSL cannot process the signature, the token is not signed. No key and no signature may cause a 500.
        return false;
      }
    },
  };
}
