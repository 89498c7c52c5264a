import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type CryptoKey, exportJWK, generateKeyPair, type JWK, SignJWT } from 'jose';
import { listen } from './listening.ts';

/** A key of the issuer: its private key, and its entry in the JWKS. */
export interface IssuerKey {
  readonly kid: string;
  readonly alg: string;
  readonly privateKey: CryptoKey;
  readonly publicJwk: JWK;
}

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

// One for all issuers of a process, because generating an RSA key takes longer than most tests.
let firstKeyPair: ReturnType<typeof generateKeyPair> | undefined;
let numberOfKeys = 0;

/**
 * Starts an identity provider for tests on a port of 127.0.0.1. It signs any claims, changes its keys, and can respond
 * to requests for its JWKS with anything.
 */
export async function startIssuer() {
  firstKeyPair ??= generateKeyPair('RS256', { extractable: true });
  let keys: readonly IssuerKey[] = [await describeKey('RS256', await firstKeyPair)];
  let fetches = 0;
  const answerNormally: Answer = (_request, response) => {
    response.writeHead(200, { 'Content-Type': 'application/json' });
    response.end(JSON.stringify({ keys: keys.map((key) => key.publicJwk) }));
  };
  let answer = answerNormally;

  const server = createServer((request, response) => {
    fetches += 1;
    answer(request, response);
  });
  const { port, url: issuer } = await listen(server);
  const audience = 'user-management-service';

  /** Signs with the newest key by default. A claim or header parameter of `undefined` is left out. */
  const sign = async (claims: object = {}, header: object = {}, options: { key?: IssuerKey } = {}) => {
    const key = options.key ?? (keys.at(-1) as IssuerKey);
    const now = Math.floor(Date.now() / 1000);
    const usual = {
      iss: issuer,
      aud: audience,
      sub: 'svc-test',
      roles: ['users.read', 'users.write'],
      iat: now,
      exp: now + 300,
    };
    return new SignJWT({ ...usual, ...claims })
      .setProtectedHeader({ alg: key.alg, kid: key.kid, typ: 'JWT', ...header })
      .sign(key.privateKey);
  };
  const addKey = async (alg = 'RS256') => {
    const key = await describeKey(alg, await generateKeyPair(alg, { extractable: true }));
    keys = [...keys, key];
    return key;
  };
  return {
    issuer,
    audience,
    jwksUri: `${issuer}/jwks`,
    sign,
    tokenFor: (...roles: string[]) => sign({ roles }),
    addKey,
    /** Replaces all keys by a new one. */
    async rotate(alg?: string) {
      const key = await addKey(alg);
      keys = [key];
      return key;
    },
    /** Responds to requests for the JWKS in this way until `answerNormally()`. */
    answer(otherwise: Answer) {
      answer = otherwise;
    },
    answerNormally() {
      answer = answerNormally;
    },
    /** Serves these keys instead of its own until `answerNormally()`. */
    publish(published: readonly unknown[]) {
      answer = (_request, response) => response.end(JSON.stringify({ keys: published }));
    },
    get keys() {
      return keys;
    },
    /** Number of requests for the JWKS. */
    get fetches() {
      return fetches;
    },
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve()).closeAllConnections();
      }),
    /** Listens again on the same port. */
    restart: () => listen(server, port),
  };
}

async function describeKey(
  alg: string,
  { privateKey, publicKey }: Awaited<ReturnType<typeof generateKeyPair>>,
): Promise<IssuerKey> {
  numberOfKeys += 1;
  const kid = `key-${numberOfKeys}`;
  return { kid, alg, privateKey, publicJwk: { ...(await exportJWK(publicKey)), kid, alg, use: 'sig' } };
}
