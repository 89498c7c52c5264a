import type { ServerResponse } from 'node:http';
import type { AugmentedRequest, RouteHandler } from 'oauth2-mock-server';

/** The client that a token names as its subject, its roles, and its lifetime in seconds. */
export interface TokenOrder {
  readonly clientId: string;
  readonly roles?: readonly string[];
  readonly expiresIn?: number;
}

/** The roles that a client can request as its scope. */
export const knownRoles: readonly string[] = ['users.read', 'users.write', 'users.delete', 'api.superuser'];

/** The roles of a client that requests none. */
export const defaultRoles: readonly string[] = ['users.read', 'users.write'];

const tokenLifetime = 3600;

const statusOf = {
  invalid_request: 400,
  invalid_client: 401,
  unsupported_grant_type: 400,
  invalid_scope: 400,
} as const;

class TokenRefusal extends Error {
  readonly code: keyof typeof statusOf;

  constructor(code: keyof typeof statusOf, description: string) {
    super(description);
    this.code = code;
  }
}

/**
 * Responds to the client credentials grant of RFC 6749, and to all other requests with the errors of its section 5.2.
 */
export function answerTokenRequest(issueToken: (order: TokenOrder) => Promise<string>): RouteHandler {
  return async (request, response) => {
    try {
      const { clientId, roles } = readTokenRequest(request);
      const token = await issueToken({ clientId, roles, expiresIn: tokenLifetime });
      const scope = roles.join(' ');
      send(response, 200, { access_token: token, token_type: 'Bearer', expires_in: tokenLifetime, scope });
    } catch (error) {
      if (!(error instanceof TokenRefusal)) throw error;
      if (error.code === 'invalid_client') response.setHeader('WWW-Authenticate', 'Basic realm="token"');
      send(response, statusOf[error.code], { error: error.code, error_description: error.message });
    }
  };
}

function readTokenRequest(request: AugmentedRequest): { clientId: string; roles: readonly string[] } {
  if (!request.headers['content-type']?.startsWith('application/x-www-form-urlencoded')) {
    throw new TokenRefusal('invalid_request', 'The request must be application/x-www-form-urlencoded.');
  }
  const form: Readonly<Record<string, unknown>> = { ...request.body };
  const repeated = Object.keys(form).find((name) => typeof form[name] !== 'string');
  if (repeated)
    throw new TokenRefusal('invalid_request', `The parameter ${repeated} is given more than once.`);
  if (!form.grant_type) throw new TokenRefusal('invalid_request', 'The parameter grant_type is missing.');

  const clientId = readBasicClient(request.headers.authorization) ?? form.client_id;
  if (!clientId) throw new TokenRefusal('invalid_client', 'The client id is missing.');
  if (form.grant_type !== 'client_credentials') {
    throw new TokenRefusal('unsupported_grant_type', 'The only grant type here is client_credentials.');
  }
  return { clientId: String(clientId), roles: readScope(form.scope) };
}

function readBasicClient(authorization: string | undefined): string | undefined {
  const encoded = /^basic +(\S+)$/i.exec(authorization ?? '')?.[1];
  if (encoded === undefined) return undefined;
  const [name = ''] = Buffer.from(encoded, 'base64').toString().split(':');
  // RFC 6749, 2.3.1: both parts are form-encoded before they are joined.
  return new URLSearchParams(`name=${name}`).get('name') ?? '';
}

function readScope(scope: unknown): readonly string[] {
  const roles = String(scope ?? '')
    .split(' ')
    .filter(Boolean);
  const unknown = roles.find((role) => !knownRoles.includes(role));
  if (unknown) throw new TokenRefusal('invalid_scope', `Known scopes are ${knownRoles.join(', ')}.`);
  return roles.length > 0 ? [...new Set(roles)] : defaultRoles;
}

function send(response: ServerResponse, status: number, body: object): void {
  response.writeHead(status, {
    'Content-Type': 'application/json',
    'Cache-Control': 'no-store',
    Pragma: 'no-cache',
  });
  response.end(JSON.stringify(body));
}
