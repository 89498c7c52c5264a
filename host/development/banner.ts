import { styleText } from 'node:util';

/** The addresses for a newcomer. Without a token endpoint, tokens come from another issuer. */
export interface Addresses {
  readonly service: string;
  readonly hasDocumentation: boolean;
  readonly tokenEndpoint: string | undefined;
  readonly token: string | undefined;
  readonly database: string | undefined;
  /** The settings of another service with the same database and issuer. */
  readonly settings: Readonly<Record<string, string | number>>;
}

/** The addresses, the settings, and `curl` lines that work as they stand. */
export function banner({ service, hasDocumentation, database, settings, ...tokens }: Addresses): string {
  const lines = [
    '',
    headline(`The service is ready on ${service}`),
    ...(hasDocumentation ? [`  ${service}/docs`, `  ${service}/redoc`, `  ${service}/openapi.json`] : []),
    ...(database ? [`  ${database}`] : []),
    '',
    headline('Settings of another service beside it, such as the one of npm start (see .env.example)'),
    ...Object.entries(settings).map(([name, value]) => `  ${name}=${value}`),
    '',
    headline(
      'In a second terminal (sh, bash or zsh), as a whole or line by line: get a token; create a user; read it,',
    ),
    headline('list all, change it, delete it'),
    '',
    ...commands(`${service}/api/v1/users/`, tokens),
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
function commands(
  users: string,
  { tokenEndpoint, token }: Pick<Addresses, 'tokenEndpoint' | 'token'>,
): string[] {
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
