import { decodeJwt, type JWTPayload } from 'jose';
import { unauthorized } from '../http/problem.ts';
import type { Settings } from '../settings/settings.ts';
import { isStorable } from '../text.ts';

/** The claims of an accepted token. `sub` is a non-empty string, and `exp` is in seconds since 1970. */
export type Claims = Readonly<Record<string, unknown>> & { readonly exp: number; readonly sub: string };

type Expected = Pick<Settings['oauth'], 'issuer' | 'audience' | 'clockTolerance'>;

/** The year 9999. A larger number is not a date (RFC 7519 section 2, NumericDate). */
const MAX_DATE_S = 253_402_300_799;

/** The reason for a payload without claims. */
export const NO_PAYLOAD = "the token's payload is not a JSON object";

/**
 * The claims of a token whose signature is verified. A refusal names the claim, for the log, but not its value.
 *
 * @throws {Problem} unauthorized_error
 */
export function readClaims(token: string, expected: Expected): Claims {
  const payload = decodePayload(token);
  const exp = demandExpected(payload, expected);
  const { iat, nbf, sub } = payload;
  if (iat !== undefined && typeof iat !== 'number') throw unauthorized('"iat" is not a number');
  if (nbf !== undefined && typeof nbf !== 'number') throw unauthorized('"nbf" is not a number');
  if (nbf !== undefined && nbf > Math.floor(Date.now() / 1000) + expected.clockTolerance)
    throw unauthorized('the token is not valid yet: "nbf"');
  if (typeof sub !== 'string' || sub === '') throw unauthorized('the token has no sub');
  if (!isStorable(sub)) throw unauthorized("the token's sub holds U+0000 or a lone surrogate");
  // RFC 8705 section 3 and RFC 9449 section 6: a caller that cannot prove the binding must not use the token.
  if (Object.hasOwn(payload, 'cnf')) throw unauthorized('the token is bound to a key or a certificate (cnf)');
  return { ...payload, exp, sub };
}

/**
 * Whether `iss`, `aud` and `exp` of a token would be accepted. Nothing of it is proven: this only decides whether its
 * signature may cause a fetch of the keys.
 */
export function hasExpectedClaims(token: string, expected: Expected): boolean {
  try {
    demandExpected(decodePayload(token), expected);
    return true;
  } catch {
    return false;
  }
}

/** From when on a token is not accepted any more, in milliseconds since 1970. */
export function expiryMs({ exp }: Pick<Claims, 'exp'>, { clockTolerance }: Pick<Expected, 'clockTolerance'>) {
  return Math.ceil(exp + clockTolerance) * 1000;
}

/** An error of jose would have the payload in its `cause`. */
function decodePayload(token: string): JWTPayload {
  try {
    return decodeJwt(token);
  } catch {
    throw unauthorized(NO_PAYLOAD);
  }
}

function demandExpected(
  { iss, aud, exp }: JWTPayload,
  { issuer, audience, clockTolerance }: Expected,
): number {
  if (iss !== issuer) throw unauthorized('unexpected "iss"');
  if (![aud].flat().some((name) => audience.some((own) => own === name)))
    throw unauthorized('unexpected "aud"');
  if (typeof exp !== 'number' || exp > MAX_DATE_S) throw unauthorized('the token has no valid "exp"');
  if (Date.now() >= expiryMs({ exp }, { clockTolerance })) throw unauthorized('the token has expired: "exp"');
  return exp;
}
