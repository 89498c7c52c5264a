import { styleText } from 'node:util';
import type { Settings } from '../../lib/settings/settings.ts';
import { USERS_PATH } from '../../lib/users/user.ts';
import type { Host } from '../host.ts';
import type { Postgres } from './postgres.ts';
import type { TokenIssuer } from './token-issuer.ts';

/** What `npm run dev` has started. Without an issuer and its token, tokens come from another issuer. */
export interface Development {
  readonly settings: Settings;
  readonly service: Host;
  readonly database: Postgres | undefined;
  readonly issuer: TokenIssuer | undefined;
  readonly token: string | undefined;
}

/** The settings of another service with the same servers. */
export function settingsBeside({ settings: { host, oauth }, service, database }: Development) {
  return {
    SVC_HOST: host,
    SVC_PORT: service.port + 1,
    ...(database && { SVC_POSTGRES_HOST: database.host, SVC_POSTGRES_PORT: database.port }),
    SVC_OAUTH_ISSUER: oauth.issuer,
    SVC_OAUTH_JWKS_URI: oauth.jwksUri,
    SVC_OAUTH_AUDIENCE: oauth.audience.join(),
    SVC_OAUTH_ROLES_CLAIM: oauth.rolesClaim,
  };
}

/** The addresses, the settings of another service with the same servers, and `curl` lines that work as they stand. */
export function banner(development: Development): string {
  const { settings, service, database, issuer, token } = development;
  const { url } = service;
  const lines = [
    '',
    headline(`The service is ready on ${url}`),
    ...(settings.environment === 'development'
      ? [`  ${url}/docs`, `  ${url}/redoc`, `  ${url}/openapi.json`]
      : []),
    ...(database ? [`  ${database.url}`] : []),
    '',
    headline('Settings of another service beside it, such as the one of npm start (see .env.example)'),
    ...Object.entries(settingsBeside(development)).map(([name, value]) => `  ${name}=${value}`),
    '',
    headline(
      'In a second terminal (sh, bash, zsh): get a token; create, read, list, change and delete a user',
    ),
    '',
    ...commands(`${url}${USERS_PATH}/`, issuer?.tokenEndpoint, token),
    '',
    headline('Ctrl-C stops everything; the data stays in .data/ for the next start.'),
    '',
  ];
  return `${lines.join('\n')}\n`;
}

/**
 * The lines have no comments, which zsh does not accept on its command line. Every address is quoted, because its
 * brackets are patterns in zsh.
 */
function commands(users: string, tokenEndpoint: string | undefined, token: string | undefined): string[] {
  const authorization = '-H "Authorization: Bearer $TOKEN"';
  const json = "-H 'Content-Type: application/json'";
  // A new address each time, so that the line can be pasted again without a conflict.
  const unique = "$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')";
  const grant = "-d grant_type=client_credentials -d client_id=newcomer -d scope='users.read users.write'";
  return [
    ...(tokenEndpoint ? [`curl -s "${tokenEndpoint}" ${grant}; echo`] : []),
    `TOKEN=${token ?? 'one-of-your-identity-provider'}`,
    `CREATED=$(curl -s "${users}" ${authorization} ${json} -d "{\\"email\\":\\"ada.${unique}@example.com\\",\\"full_name\\":\\"Ada Lovelace\\"}"); echo "$CREATED"`,
    `ID=$(echo "$CREATED" | sed 's/.*"id":"\\([^"]*\\)".*/\\1/'); echo "$ID"`,
    `curl -si "${users}$ID" ${authorization}; echo`,
    `curl -si "${users}?skip=0&limit=10" ${authorization}; echo`,
    `curl -si -X PATCH "${users}$ID" ${authorization} ${json} -d '{"full_name":"Countess of Lovelace"}'; echo`,
    `curl -si -X DELETE "${users}$ID" ${authorization}; echo`,
  ];
}

function headline(text: string): string {
  return styleText('bold', text, { stream: process.stdout });
}
