import { createHmac, KeyObject, sign } from 'node:crypto';
import type { IssuerKey, startIssuer } from './tokens.ts';

/** base64url of a text, of bytes, or of a value as JSON. */
export function encoded(value: unknown): string {
  const isRaw = typeof value === 'string' || value instanceof Uint8Array;
  return Buffer.from(isRaw ? value : JSON.stringify(value)).toString('base64url');
}

/** A token with any header, payload and signature. */
export function forged(
  header: unknown,
  payload: unknown,
  signature: (input: string) => Uint8Array | string,
): string {
  const input = `${encoded(header)}.${encoded(payload)}`;
  return `${input}.${encoded(signature(input))}`;
}

/** Signs as RS256 with a key of the issuer, or with any other RSA key. */
export function rs256(key: IssuerKey | KeyObject) {
  const privateKey = key instanceof KeyObject ? key : KeyObject.from(key.privateKey);
  return (input: string): Uint8Array => sign('sha256', Buffer.from(input), privateKey);
}

/** Signs with a secret, as for HS256, HS384 or HS512. */
export function hmac(algorithm: string, secret: Uint8Array | string) {
  return (input: string): Uint8Array =>
    createHmac(algorithm.replace('HS', 'sha'), secret).update(input).digest();
}

/** The header and the claims of a good token of this issuer, and its first key, which is for RS256. */
export function goodParts({ issuer }: { readonly issuer: Awaited<ReturnType<typeof startIssuer>> }) {
  const [key] = issuer.keys as [IssuerKey];
  const now = Math.floor(Date.now() / 1000);
  return {
    key,
    header: { alg: key.alg, kid: key.kid, typ: 'JWT' },
    claims: {
      iss: issuer.issuer,
      aud: issuer.audience,
      sub: 'svc-test',
      roles: ['users.read'],
      iat: now,
      exp: now + 300,
    },
  };
}

/** Different tokens, alternately with a signature that is not theirs, and with a key that the identity provider lacks. */
export function makeUpTokens(valid: string, count: number): string[] {
  const [header, , signature] = valid.split('.');
  const otherKey = encoded({ alg: 'RS256', kid: 'unknown', typ: 'JWT' });
  return Array.from({ length: count }, (_, index) => {
    const payload = encoded({ sub: `made up ${index}`, exp: 4e9 });
    return `${index % 2 === 0 ? header : otherKey}.${payload}.${signature}`;
  });
}
