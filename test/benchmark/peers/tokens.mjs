import { createPublicKey, verify } from 'node:crypto';

const key = createPublicKey(process.env.PUBLIC_KEY);
const CACHE_ENTRIES = 10_000;
const accepted = new Map();

/**
 * The claims of the token in an Authorization header; undefined when it is not accepted. RS256, issuer, audience and
 * expiry are checked by hand, which is the fastest way there is; a token that was accepted is remembered.
 */
export function claimsOf(authorization) {
  if (!authorization?.startsWith('Bearer ')) return undefined;
  const token = authorization.slice(7);
  const claims = accepted.get(token) ?? prove(token);
  return claims && claims.exp > Date.now() / 1000 ? claims : undefined;
}

/** The status of a refusal; undefined for a caller with the role. */
export function refusalOf(authorization, role) {
  const claims = claimsOf(authorization);
  if (!claims) return 401;
  return claims.roles?.includes(role) ? undefined : 403;
}

function prove(token) {
  const [header, payload, signature, ...rest] = token.split('.');
  if (!signature || rest.length > 0 || parse(header).alg !== 'RS256') return undefined;
  const isSigned = verify('sha256', `${header}.${payload}`, key, Buffer.from(signature, 'base64url'));
  if (!isSigned) return undefined;
  const claims = parse(payload);
  const isForUs = claims.iss === process.env.ISSUER && [claims.aud].flat().includes(process.env.AUDIENCE);
  if (!isForUs || !claims.sub || typeof claims.exp !== 'number') return undefined;
  if (accepted.size >= CACHE_ENTRIES) accepted.delete(accepted.keys().next().value);
  accepted.set(token, claims);
  return claims;
}

function parse(part) {
  return JSON.parse(Buffer.from(part, 'base64url').toString());
}
