import { createPublicKey, type JsonWebKey } from 'node:crypto';
import { startIssuer } from '../../stage/tokens.ts';

/** More than any cache of tokens here holds, so that each in turn is a new one. */
const FRESH_TOKENS = 24_576;

const SIGNED_AT_ONCE = 64;

/** An identity provider, a token of one caller, many tokens to be used once each, and tokens to be refused. */
export async function startCredentials(needsFreshTokens: boolean) {
  const issuer = await startIssuer();
  const now = Math.floor(Date.now() / 1000);
  const exp = now + 24 * 3600;
  const fresh: string[] = [];
  while (fresh.length < (needsFreshTokens ? FRESH_TOKENS : SIGNED_AT_ONCE)) {
    const signed = Array.from({ length: SIGNED_AT_ONCE }, (_, n) =>
      issuer.sign({ exp, jti: `${fresh.length + n}` }),
    );
    fresh.push(...(await Promise.all(signed)));
  }
  const jwk = issuer.keys[0]?.publicJwk as JsonWebKey;
  return {
    issuer,
    publicKey: createPublicKey({ key: jwk, format: 'jwk' })
      .export({ type: 'spki', format: 'pem' })
      .toString(),
    token: await issuer.sign({ exp }),
    fresh,
    refused: {
      expired: await issuer.sign({ exp: now - 60 }),
      'of another issuer': await issuer.sign({ exp, iss: 'https://other.example' }),
      'for another audience': await issuer.sign({ exp, aud: 'other' }),
    },
    withoutRole: await issuer.sign({ exp, roles: ['users.none'] }),
  };
}

export type Credentials = Awaited<ReturnType<typeof startCredentials>>;
