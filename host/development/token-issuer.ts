import { randomUUID } from 'node:crypto';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { dirname } from 'node:path';
import { JWKStore, OAuth2Issuer, OAuth2Service, type TokenRequestIncomingMessage } from 'oauth2-mock-server';
import { listen, urlOf } from '../listen.ts';
import { createWhole } from './postgres/place.ts';

/** The audiences of its tokens, its address (port 0 for a free port), and the file that keeps its key across restarts. */
export interface TokenIssuerOptions {
  readonly audience: string | readonly string[];
  readonly host?: string;
  readonly port: number;
  readonly keyFile?: string;
  /** The name in its tokens and metadata, if it is not the address that it listens on. */
  readonly issuer?: string;
}

/** The client that a token names as its subject, its roles, and its lifetime in seconds (default: one hour). */
interface TokenOrder {
  readonly clientId: string;
  readonly roles?: readonly string[];
  readonly expiresIn?: number;
}

/** A running issuer: the addresses of its OAuth 2.0 endpoints, and tokens without a request. */
export type TokenIssuer = Awaited<ReturnType<typeof startTokenIssuer>>;

const KNOWN_ROLES = ['users.read', 'users.write', 'users.delete', 'api.superuser'];
const DEFAULT_ROLES = ['users.read', 'users.write'];

/**
 * Starts the development substitute for an identity provider: OAuth 2.0 client credentials (RFC 6749, 4.4), RS256
 * tokens with the roles in `aud` after the audience, JWKS and metadata. It checks no secrets: never use it in
 * production.
 */
export async function startTokenIssuer(options: TokenIssuerOptions) {
  const { audience, host = '127.0.0.1', keyFile } = options;
  const oauth = new OAuth2Issuer();
  await oauth.keys.add(await keepSigningKey(keyFile));
  const claimsOf = ({ clientId, roles = DEFAULT_ROLES }: TokenOrder) => ({
    sub: clientId,
    client_id: clientId,
    aud: [audience, ...roles].flat(),
  });

  const service = new OAuth2Service(oauth);
  service.on('beforeTokenSigning', ({ payload }, request) => {
    Object.assign(payload, claimsOf(readTokenRequest(request)));
  });
  service.on('beforeResponse', (response, request) => {
    const { clientId, roles } = readTokenRequest(request);
    response.body.scope = roles.join(' ');
    if (clientId && roles.every((role) => KNOWN_ROLES.includes(role))) return;
    const error = clientId ? 'invalid_scope' : 'invalid_client';
    const error_description = `Send a client id. The scopes are ${KNOWN_ROLES.join(', ')}.`;
    Object.assign(response, { statusCode: 400, body: { error, error_description } });
  });

  const server = createServer(service.requestHandler);
  await listen(server, { host, port: options.port });
  const address = urlOf(host, (server.address() as AddressInfo).port);
  oauth.url = options.issuer ?? address;
  return {
    issuer: oauth.url,
    jwksUri: `${address}/jwks`,
    tokenEndpoint: `${address}/token`,
    issueToken: ({ expiresIn, ...order }: TokenOrder) =>
      oauth.buildToken({
        expiresIn,
        scopesOrTransform: (_, payload) => Object.assign(payload, claimsOf(order)),
      }),
    async stop(): Promise<void> {
      server.closeAllConnections();
      await server[Symbol.asyncDispose]();
    },
  };
}

function readTokenRequest({ headers, body }: TokenRequestIncomingMessage) {
  const [, basic] = /^basic +(\S+)$/i.exec(headers.authorization ?? '') ?? [];
  const credentials = Buffer.from(basic ?? '', 'base64').toString();
  // RFC 6749, 2.3.1: the client id is form-encoded before it is joined with the secret.
  const decoded = new URLSearchParams(`name=${credentials.split(':')[0]}`).get('name');
  const clientId = basic ? decoded : body.client_id;
  return {
    clientId: String(clientId ?? ''),
    roles: [...new Set(body.scope?.match(/[^ ]+/g) ?? DEFAULT_ROLES)],
  };
}

/** Returns the RS256 private key in `file`, and creates it at the first time; without a file a new one. */
async function keepSigningKey(file: string | undefined): Promise<Record<string, unknown>> {
  const newKey = () => new JWKStore().generate('RS256', { kid: randomUUID() });
  const generate = async () => ({ ...(await newKey()), use: 'sig' });
  if (file === undefined) return generate();
  await mkdir(dirname(file), { recursive: true });
  await createWhole(file, async (draft) =>
    writeFile(draft, JSON.stringify(await generate()), { mode: 0o600 }),
  );
  return JSON.parse(await readFile(file, 'utf8'));
}
