import { styleText } from 'node:util';

/** The addresses a newcomer needs; without a token endpoint the tokens come from somebody else's issuer. */
export interface Addresses {
  readonly service: string;
  readonly hasDocumentation: boolean;
  readonly tokenEndpoint: string | undefined;
  readonly token: string | undefined;
  readonly database: string | undefined;
}

/** Writes the addresses and `curl` lines that work as they stand when pasted into a POSIX shell. */
export function banner({ service, hasDocumentation, tokenEndpoint, token, database }: Addresses): string {
  const users = `${service}/api/v1/users/`;
  const authorization = '-H "Authorization: Bearer $TOKEN"';
  const json = "-H 'Content-Type: application/json'";
  // A new address each time, so that the line can be pasted again without a conflict.
  const uniqueness = "$(od -An -N4 -tx4 /dev/urandom | tr -d ' ')";
  const lines = [
    '',
    headline(`The service is ready on ${service}`),
    ...(hasDocumentation ? [`  ${service}/docs`, `  ${service}/redoc`, `  ${service}/openapi.json`] : []),
    ...(database ? [`  ${database}`] : []),
    '',
    ...tokenLines(tokenEndpoint, token),
    headline('# Create a user and keep its id'),
    `CREATED=$(curl -s ${users} ${authorization} ${json} -d "{\\"email\\":\\"ada.${uniqueness}@example.com\\",\\"full_name\\":\\"Ada Lovelace\\"}"); echo "$CREATED"`,
    `ID=$(echo "$CREATED" | sed 's/.*"id":"\\([^"]*\\)".*/\\1/'); echo "$ID"`,
    headline('# Read it, list all, change it, delete it'),
    `curl -si ${users}$ID ${authorization}; echo`,
    `curl -si "${users}?skip=0&limit=10" ${authorization}; echo`,
    `curl -si -X PATCH ${users}$ID ${authorization} ${json} -d '{"full_name":"Countess of Lovelace"}'; echo`,
    `curl -si -X DELETE ${users}$ID ${authorization}; echo`,
    '',
    headline('Ctrl-C stops everything; the data stays in .data/ for the next start.'),
    '',
  ];
  return `${lines.join('\n')}\n`;
}

function tokenLines(tokenEndpoint: string | undefined, token: string | undefined): string[] {
  if (tokenEndpoint === undefined) return [headline('# A token of your identity provider'), 'TOKEN=...'];
  return [
    headline('# A fresh token, as any client gets one (any client id; scope chooses the roles)'),
    `curl -s ${tokenEndpoint} -d grant_type=client_credentials -d client_id=newcomer -d scope='users.read users.write'; echo`,
    headline('# Or this one, which is valid for a day'),
    `TOKEN=${token}`,
  ];
}

// Headlines that stand between commands are shell comments: the whole can be pasted at once.
function headline(text: string): string {
  return styleText('bold', text, { stream: process.stdout });
}
