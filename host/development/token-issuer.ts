import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { exportJWK, generateKeyPair, type JWK } from 'jose';
import { Events, type MutableResponse, OAuth2Issuer, OAuth2Service } from 'oauth2-mock-server';
import { urlOf } from '../listen.ts';
import { answerTokenRequest, defaultRoles, knownRoles, type TokenOrder } from './token-endpoint.ts';

/** The audience of its tokens, its address (port 0 for a free port), and the file that keeps its key across restarts. */
export interface TokenIssuerOptions {
  readonly audience: string;
  readonly host?: string;
  readonly port: number;
  readonly keyFile?: string;
  /** The name in its tokens and metadata, if it is not the address that it listens on. */
  readonly issuer?: string;
}

/** A running issuer: the addresses of its OAuth 2.0 endpoints, and tokens without a request. */
export type TokenIssuer = Awaited<ReturnType<typeof startTokenIssuer>>;

/**
 * Starts the development substitute for an identity provider: OAuth 2.0 client credentials (RFC 6749, 4.4), RS256
 * tokens with the roles in `aud` after the audience, JWKS and metadata. It checks no secrets: never use it in
 * production.
 */
export async function startTokenIssuer(options: TokenIssuerOptions) {
  const { audience, host = '127.0.0.1', keyFile } = options;
  const oauth = new OAuth2Issuer();
  await oauth.keys.add({ ...(await keepSigningKey(keyFile)) });
  const issueToken = ({ clientId, roles = defaultRoles, expiresIn }: TokenOrder) =>
    oauth.buildToken({
      expiresIn,
      scopesOrTransform: (_header, payload) => {
        Object.assign(payload, { sub: clientId, client_id: clientId, aud: [audience, ...roles] });
      },
    });

  const server = createServer(routes(oauth, issueToken));
  server.listen(options.port, host);
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const address = urlOf(host, port);
  const issuer = options.issuer ?? address;
  oauth.url = issuer;
  return {
    issuer,
    jwksUri: `${address}/jwks`,
    tokenEndpoint: `${address}/token`,
    issueToken,
    stop: () =>
      new Promise<void>((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function routes(oauth: OAuth2Issuer, issueToken: (order: TokenOrder) => Promise<string>): RequestListener {
  // The package's own token endpoint accepts every grant and refuses with problem documents. The endpoint of this
  // project replaces it.
  const service = new OAuth2Service(oauth, { token: '/unused', jwks: '/jwks' });
  service.addRoute('POST', '/token', answerTokenRequest(issueToken));
  service.on(Events.BeforeWellKnownOpenIdConfiguration, (answer: MutableResponse) => {
    answer.body = metadata(oauth.url);
  });
  return (request, response) => {
    // OAuth 2.0 (RFC 8414) and OpenID Connect expect the same document in two places.
    if (request.url === '/.well-known/oauth-authorization-server')
      request.url = '/.well-known/openid-configuration';
    service.requestHandler(request, response);
  };
}

function metadata(issuer: string | undefined): Record<string, unknown> {
  return {
    issuer,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/jwks`,
    grant_types_supported: ['client_credentials'],
    response_types_supported: [],
    scopes_supported: knownRoles,
    subject_types_supported: ['public'],
    token_endpoint_auth_methods_supported: ['client_secret_basic', 'client_secret_post', 'none'],
    id_token_signing_alg_values_supported: ['RS256'],
    notice: 'For development only: every client gets a token, whatever its secret.',
  };
}

/** Returns the RS256 private key in `file`, and creates it at the first time; without a file a new one. */
async function keepSigningKey(file: string | undefined): Promise<JWK> {
  const kept = file && (await readFile(file, 'utf8').catch(() => undefined));
  if (kept) return JSON.parse(kept) as JWK;

  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: 'RS256', use: 'sig' };
  if (file) {
    // A start that is cut off must not leave half a key.
    const draft = `${file}.${process.pid}`;
    await mkdir(dirname(file), { recursive: true });
    await writeFile(draft, JSON.stringify(key), { mode: 0o600 });
    await rename(draft, file);
  }
  return key;
}
