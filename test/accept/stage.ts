import { freePort } from '../../host/development/free-port.ts';
import { startTokenIssuer } from '../../host/development/token-issuer.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { startHttpFront } from '../stage/http-front.ts';
import { type RawRequest, sendTo } from '../stage/raw-request.ts';
import { startService } from '../stage/service.ts';
import type { Breaking } from './faults.ts';

/**
 * A service with three users of another caller, one of them without a name, whose tokens come from an issuer
 * with a token endpoint.
 */
export async function startAcceptable(variables: Variables = {}) {
  const audience = 'user-management-service';
  const issuer = await startTokenIssuer({ audience, port: await freePort() });
  const service = await startService({
    SVC_OAUTH_ISSUER: issuer.issuer,
    SVC_OAUTH_JWKS_URI: issuer.jwksUri,
    SVC_OAUTH_AUDIENCE: audience,
    SVC_OAUTH_ROLES_CLAIM: 'aud',
    ...variables,
  });
  const token = await issuer.issueToken({ clientId: 'other' });
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
  const all = `${service.url}/api/v1/users/`;
  for (const [name, full_name] of [['ada', 'ADA'], ['grace', 'GRACE'], ['mary']]) {
    const body = JSON.stringify({ email: `${name}@example.com`, full_name });
    await fetch(all, { method: 'POST', headers, body });
  }
  const users = async () => (await fetch(all, { headers })).json();
  return {
    url: service.url,
    database: service.database,
    tokens: issuer,
    /** The variables with which the checks get a token. */
    credentials: {
      ACCEPT_TOKEN_URL: issuer.tokenEndpoint,
      ACCEPT_CLIENT_ID: 'acceptance',
      ACCEPT_CLIENT_SECRET: 'not looked at',
    },
    users,
    /** The users that exist before any check. */
    others: await users(),
    async stop() {
      await Promise.all([service.stop(), issuer.stop()]);
    },
  };
}

/** A proxy in front of a service, which breaks it. `seen` has the requests that it received. */
export async function startBreaking(
  url: string,
  { onRequest = (request) => request, onResponse = (answer) => answer }: Breaking,
) {
  const seen: RawRequest[] = [];
  const front = await startHttpFront(async (request) => {
    seen.push(request);
    const fields = request.fields.filter(([name]) => !OF_THE_CONNECTION.test(name));
    return onResponse(await sendTo(url, onRequest({ ...request, fields })), request);
  });
  return { ...front, seen };
}

const OF_THE_CONNECTION = /^(host|connection|content-length|transfer-encoding)$/i;
