import { parseArgs } from 'node:util';

/** The command line or the environment is invalid. */
export class UsageError extends Error {}

export const USAGE = `npm run accept -- <url> [--profile read-only|full]
test/accept/README.md has the variables of the environment.`;

/** The options of the command line and the environment. @throws {UsageError} */
export function optionsOf(words, environment) {
  const refuse = (message) => {
    throw new UsageError(message);
  };
  const { values, positionals } = parsed(words, refuse);
  const { profile } = values;
  if (!['read-only', 'full'].includes(profile)) refuse('--profile is one of read-only, full.');
  if (positionals.length !== 1) refuse('Exactly one URL has to be given.');
  const url = URL.canParse(positionals[0]) ? new URL(positionals[0]) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) refuse(`${positionals[0]} is no http(s) URL.`);
  if (url.username || url.password || url.search || url.hash)
    refuse('The URL has no credentials, no query and no fragment.');
  const deleteRole = environment.ACCEPT_DELETE_ROLE || 'users.write';
  if (!/^users\.(write|delete)$/.test(deleteRole))
    refuse('ACCEPT_DELETE_ROLE is users.write or users.delete.');
  const bodyLimit = environment.ACCEPT_BODY_LIMIT || '65536';
  if (!/^[1-9]\d{0,8}$/.test(bodyLimit)) refuse('ACCEPT_BODY_LIMIT is a number of bytes.');
  const tokenUrl = environment.ACCEPT_TOKEN_URL;
  if (tokenUrl && !URL.canParse(tokenUrl)) refuse('ACCEPT_TOKEN_URL is no URL.');
  if (tokenUrl && !environment.ACCEPT_CLIENT_ID) refuse('ACCEPT_TOKEN_URL needs ACCEPT_CLIENT_ID.');
  return {
    base: { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') },
    profile,
    credentials: {
      token: environment.ACCEPT_TOKEN?.trim(),
      tokenUrl,
      clientId: environment.ACCEPT_CLIENT_ID,
      clientSecret: environment.ACCEPT_CLIENT_SECRET || undefined,
      scope: environment.ACCEPT_SCOPE || undefined,
    },
    requestIdHeader: (environment.ACCEPT_REQUEST_ID_HEADER || 'X-Request-ID').toLowerCase(),
    deleteRole,
    bodyLimit: Number(bodyLimit),
  };
}

function parsed(args, refuse) {
  const options = { profile: { type: 'string', default: 'read-only' } };
  try {
    return parseArgs({ args, options, allowPositionals: true });
  } catch ({ message }) {
    return refuse(`${message.split('. ')[0]}.`);
  }
}
