import { unauthorized } from '../http/problem.ts';
import type { Settings } from '../settings/settings.ts';
import { isStorable } from '../text.ts';

/** The claims of a verified token. `sub` is a non-empty string, and `exp` is in seconds since 1970. */
export type Claims = Readonly<Record<string, unknown>> & { readonly exp: number; readonly sub: string };

type Expected = Pick<Settings['oauth'], 'issuer' | 'audience' | 'clockTolerance'>;

/** The year 9999. A larger number is not a date (RFC 7519 section 2, NumericDate). */
const LATEST_DATE = 253_402_300_799;

/**
 * Checks the payload of a token whose signature has been verified (RFC 7519 section 7.2, RFC 8725). A refusal names the
 * claim, for the log, but not its value.
 *
 * @throws {Problem} unauthorized_error
 */
export function acceptableClaims(payload: unknown, { issuer, audience, clockTolerance }: Expected): Claims {
  if (typeof payload !== 'object' || payload === null || Array.isArray(payload))
    throw unauthorized("the token's payload is not a JSON object");
  const claims = payload as Readonly<Record<string, unknown>>;
  const { iss, aud, exp, nbf, iat, sub } = claims;
  const now = Math.floor(Date.now() / 1000);

  if (iss !== issuer) throw unauthorized('unexpected "iss"');
  if (aud !== audience && !(Array.isArray(aud) && aud.includes(audience)))
    throw unauthorized('unexpected "aud"');
  if (typeof exp !== 'number' || exp > LATEST_DATE) throw unauthorized('the token has no valid "exp"');
  if (hasExpired(exp, clockTolerance, now)) throw unauthorized('the token has expired: "exp"');
  if (nbf !== undefined && !isNumber(nbf)) throw unauthorized('the token has an "nbf" that is no number');
  if (nbf !== undefined && nbf > now + clockTolerance)
    throw unauthorized('the token is not valid yet: "nbf"');
  if (iat !== undefined && !isNumber(iat)) throw unauthorized('the token has an "iat" that is no number');
  if (typeof sub !== 'string' || sub === '') throw unauthorized('the token has no sub');
  if (!isStorable(sub)) throw unauthorized("the token's sub holds U+0000 or a lone surrogate");
  // RFC 8705 section 3 and RFC 9449 section 6: a caller that cannot prove the binding must not use the token.
  if (Object.hasOwn(claims, 'cnf')) throw unauthorized('the token is bound to a key or a certificate (cnf)');
  return claims as Claims;
}

/** Whether a token with this `exp` has expired. */
export function hasExpired(
  exp: number,
  clockTolerance: number,
  now = Math.floor(Date.now() / 1000),
): boolean {
  return exp <= now - clockTolerance;
}

const isNumber = (value: unknown): value is number => typeof value === 'number';
