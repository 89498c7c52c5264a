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

/** In seconds. */
const TOKEN_LIFETIME = 3600;

const HEADERS = { 'Content-Type': 'application/json', 'Cache-Control': 'no-store', Pragma: 'no-cache' };

/**
 * Responds to the client credentials grant of RFC 6749, and to all other requests with the errors of its section 5.2.
 */
export function answerTokenRequest(issueToken: (order: TokenOrder) => Promise<string>): RouteHandler {
  return async (request, response) => {
    const order = readTokenRequest(request);
    if ('error' in order) {
      const challenge = order.error === 'invalid_client' && { 'WWW-Authenticate': 'Basic realm="token"' };
      response.writeHead(challenge ? 401 : 400, { ...HEADERS, ...challenge }).end(JSON.stringify(order));
      return;
    }
    const token = {
      access_token: await issueToken(order),
      token_type: 'Bearer',
      expires_in: order.expiresIn,
    };
    response.writeHead(200, HEADERS).end(JSON.stringify({ ...token, scope: order.roles.join(' ') }));
  };
}

function readTokenRequest({ headers, body }: AugmentedRequest) {
  const form: Readonly<Record<string, unknown>> = { ...body };
  if (!headers['content-type']?.startsWith('application/x-www-form-urlencoded'))
    return refusal('invalid_request', 'The request must be application/x-www-form-urlencoded.');
  const repeated = Object.keys(form).find((name) => typeof form[name] !== 'string');
  if (repeated) return refusal('invalid_request', `The parameter ${repeated} is given more than once.`);
  if (!form.grant_type) return refusal('invalid_request', 'The parameter grant_type is missing.');
  const clientId = readBasicClient(headers.authorization) ?? form.client_id;
  if (!clientId) return refusal('invalid_client', 'The client id is missing.');
  if (form.grant_type !== 'client_credentials')
    return refusal('unsupported_grant_type', 'The only grant type here is client_credentials.');
  const roles = String(form.scope ?? '').match(/[^ ]+/g) ?? defaultRoles;
  if (!roles.every((role) => knownRoles.includes(role)))
    return refusal('invalid_scope', `Known scopes are ${knownRoles.join(', ')}.`);
  return { clientId: String(clientId), roles: [...new Set(roles)], expiresIn: TOKEN_LIFETIME };
}

function refusal(error: string, error_description: string) {
  return { error, error_description };
}

function readBasicClient(authorization = ''): string | undefined {
  const encoded = /^basic +(\S+)$/i.exec(authorization)?.[1];
  if (encoded === undefined) return undefined;
  const [name = ''] = Buffer.from(encoded, 'base64').toString().split(':');
  // RFC 6749, 2.3.1: both parts are form-encoded before they are joined.
  return new URLSearchParams(`name=${name}`).get('name') ?? '';
}
