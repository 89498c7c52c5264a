import { createVerifier } from 'fast-jwt';
import { settings } from './settings.mjs';

const verify = createVerifier({
  key: settings.publicKey,
  algorithms: ['RS256'],
  allowedIss: settings.issuer,
  allowedAud: settings.audience,
  requiredClaims: ['exp', 'sub'],
});

/** The status of a refusal; undefined for a caller with the role. Each token is checked at each request. */
export function refusalOf(authorization, role) {
  try {
    if (!authorization?.startsWith('Bearer ')) return 401;
    return verify(authorization.slice(7)).roles?.includes(role) ? undefined : 403;
  } catch {
    return 401;
  }
}
