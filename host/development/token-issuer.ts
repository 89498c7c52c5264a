import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { JWKStore, OAuth2Issuer, OAuth2Service } from 'oauth2-mock-server';
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
  const issueToken = ({ clientId, roles = defaultRoles, expiresIn }: TokenOrder) => {
    const claims = { sub: clientId, client_id: clientId, aud: [audience, ...roles] };
    return oauth.buildToken({ expiresIn, scopesOrTransform: (_, payload) => Object.assign(payload, claims) });
  };

  // The package's own token endpoint accepts every grant and refuses with problem documents. This project replaces it,
  // and the metadata that describe it.
  const service = new OAuth2Service(oauth, { token: '/unused', wellKnownDocument: '/unused-metadata' });
  service.addRoute('POST', '/token', answerTokenRequest(issueToken));
  // OAuth 2.0 (RFC 8414) and OpenID Connect expect the same document in two places.
  for (const name of ['oauth-authorization-server', 'openid-configuration'])
    service.addRoute('GET', `/.well-known/${name}`, (_, response) => {
      response
        .writeHead(200, { 'Content-Type': 'application/json' })
        .end(JSON.stringify(metadata(oauth.url)));
    });

  const server = createServer(service.requestHandler);
  server.listen(options.port, host);
  await once(server, 'listening');
  const address = urlOf(host, (server.address() as AddressInfo).port);
  oauth.url = options.issuer ?? address;
  return {
    issuer: oauth.url,
    jwksUri: `${address}/jwks`,
    tokenEndpoint: `${address}/token`,
    issueToken,
    async stop(): Promise<void> {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}

function metadata(issuer: string | undefined) {
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
async function keepSigningKey(file: string | undefined): Promise<object> {
  const kept = file && (await readFile(file, 'utf8').catch(() => undefined));
  if (kept) return JSON.parse(kept);

  const key = { ...(await new JWKStore().generate('RS256', { kid: randomUUID() })), use: 'sig' };
  if (file) {
    // A start that is cut off must not leave half a key.
    const draft = `${file}.${process.pid}`;
    await mkdir(dirname(file), { recursive: true });
    await writeFile(draft, JSON.stringify(key), { mode: 0o600 });
    await rename(draft, file);
  }
  return key;
}
