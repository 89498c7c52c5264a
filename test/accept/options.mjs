/** The command line or the environment is invalid. */
export class UsageError extends Error {}

export const USAGE = 'npm run accept -- <url> [--profile read-only|full]';

export const environmentHelp = `
  <url>                      where the service is: https://users.example.com, or with the path it is mounted under
  --profile read-only        sends GET, HEAD and OPTIONS alone (the default)
  --profile full             also writes; deletes all that it has written

  ACCEPT_TOKEN               an access token with the roles users.read and, for --profile full, users.write; or
  ACCEPT_TOKEN_URL           the token endpoint for the client credentials grant, with
  ACCEPT_CLIENT_ID, ACCEPT_CLIENT_SECRET, ACCEPT_SCOPE
  ACCEPT_DELETE_ROLE         the deployment's SVC_OAUTH_DELETE_ROLE (users.write)
  ACCEPT_REQUEST_ID_HEADER   the deployment's SVC_REQUEST_ID_HEADER (X-Request-ID)
  ACCEPT_BODY_LIMIT          the deployment's SVC_BODY_LIMIT (65536)

Exit code: 0 when all held, 1 when something did not, 2 when it could not be judged.`;

const PROFILES = ['read-only', 'full'];

/**
 * The options of the command line and the environment.
 *
 * @throws {UsageError}
 */
export function optionsOf(words, environment) {
  const places = [];
  let profile = 'read-only';
  for (const left = [...words]; left.length > 0; ) {
    const word = left.shift();
    if (word === '--help' || word === '-h') return { wantsHelp: true };
    if (word === '--profile') profile = left.shift();
    else if (word.startsWith('--profile=')) profile = word.slice('--profile='.length);
    else if (word.startsWith('-')) throw new UsageError(`Unknown option ${word}.`);
    else places.push(word);
  }
  if (!PROFILES.includes(profile)) throw new UsageError(`--profile is one of ${PROFILES.join(', ')}.`);
  if (places.length !== 1) throw new UsageError('Exactly one URL has to be given.');
  return {
    base: baseOf(places[0]),
    profile,
    credentials: credentialsOf(environment),
    requestIdHeader: (environment.ACCEPT_REQUEST_ID_HEADER || 'X-Request-ID').toLowerCase(),
    deleteRole: deleteRoleOf(environment.ACCEPT_DELETE_ROLE || 'users.write'),
    bodyLimit: bytesOf(environment.ACCEPT_BODY_LIMIT || '65536'),
  };
}

function baseOf(text) {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol)) throw new UsageError(`${text} is no http(s) URL.`);
  if (url.username || url.password || url.search || url.hash)
    throw new UsageError('The URL has no credentials, no query and no fragment.');
  return { origin: url.origin, prefix: url.pathname.replace(/\/+$/, '') };
}

function bytesOf(text) {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError('ACCEPT_BODY_LIMIT is a number of bytes.');
  return Number(text);
}

function deleteRoleOf(text) {
  if (!/^users\.(write|delete)$/.test(text))
    throw new UsageError('ACCEPT_DELETE_ROLE is users.write or users.delete.');
  return text;
}

function credentialsOf(environment) {
  const { ACCEPT_TOKEN, ACCEPT_TOKEN_URL, ACCEPT_CLIENT_ID, ACCEPT_CLIENT_SECRET, ACCEPT_SCOPE } =
    environment;
  if (ACCEPT_TOKEN) return { token: ACCEPT_TOKEN.trim() };
  if (!ACCEPT_TOKEN_URL) return undefined;
  if (!URL.canParse(ACCEPT_TOKEN_URL)) throw new UsageError('ACCEPT_TOKEN_URL is no URL.');
  if (!ACCEPT_CLIENT_ID) throw new UsageError('ACCEPT_TOKEN_URL needs ACCEPT_CLIENT_ID.');
  return {
    tokenUrl: ACCEPT_TOKEN_URL,
    clientId: ACCEPT_CLIENT_ID,
    clientSecret: ACCEPT_CLIENT_SECRET || undefined,
    scope: ACCEPT_SCOPE || undefined,
  };
}
