import { decodeJwt, type JWTPayload } from 'jose';
import { unauthorized } from '../http/problem.ts';
import type { Settings } from '../settings/settings.ts';
import { isStorable } from '../text.ts';

/** The claims of an accepted token. `sub` is a non-empty string, and `exp` is in seconds since 1970. */
export type Claims = Readonly<Record<string, unknown>> & { readonly exp: number; readonly sub: string };

/**
 * Whether `iss`, `aud` and `exp` of a token would be accepted. Nothing of it is proven: this only decides whether its
 * signature may cause a fetch of the keys.
 */
export function hasExpectedClaims(
  token: string,
  { issuer, audience, clockTolerance }: Pick<Settings['oauth'], 'issuer' | 'audience' | 'clockTolerance'>,
): boolean {
  try {
    const { iss, aud, exp } = decodeJwt(token);
    const isCurrent =
      Number(exp) > Math.floor(Date.now() / 1000) - clockTolerance && Number(exp) <= MAX_DATE_S;
    const isForService = [aud].flat().some((name) => audience.some((own) => own === name));
    return iss === issuer && isForService && typeof exp === 'number' && isCurrent;
  } catch {
    return false;
  }
}

/** The year 9999. A larger number is not a date (RFC 7519 section 2, NumericDate). */
const MAX_DATE_S = 253_402_300_799;

/**
 * Demands what jose does not check in the payload of a token that it has verified. A refusal names the claim, for the
 * log, but not its value.
 *
 * @throws {Problem} unauthorized_error
 */
export function demandClaims(payload: JWTPayload): Claims {
  const { exp, sub } = payload;
  if (exp === undefined || exp > MAX_DATE_S) throw unauthorized('the token has no valid "exp"');
  if (typeof sub !== 'string' || sub === '') throw unauthorized('the token has no sub');
  if (!isStorable(sub)) throw unauthorized("the token's sub holds U+0000 or a lone surrogate");
  // RFC 8705 section 3 and RFC 9449 section 6: a caller that cannot prove the binding must not use the token.
  if (Object.hasOwn(payload, 'cnf')) throw unauthorized('the token is bound to a key or a certificate (cnf)');
  return { ...payload, exp, sub };
}
