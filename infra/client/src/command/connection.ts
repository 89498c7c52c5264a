import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { VERSION } from '../checks.ts';
import { clientCredentials } from '../client-credentials.ts';
import { isAddress } from '../problem.ts';
import { isEndOfWait, type RetryOptions } from '../retries.ts';
import { createUsers, type Users, type UsersOptions } from '../users.ts';
import { EXIT, Failure, reasonOf } from './failure.ts';

/** The settings of the command. An empty value counts as unset. */
export type Variables = Readonly<Record<string, string | undefined>>;

/** Where the service is, and the source of the tokens. */
type Service = Pick<UsersOptions, 'url' | 'token'>;

/** The file in which `npm run dev` of this clone keeps the address of its service, and a token. */
const DEVELOPMENT = fileURLToPath(new URL('../../../../.data/development.json', import.meta.url));

/** What the person at the terminal is to know, and whether the command waits for the service without limit. */
type Patience = { readonly say: (text: string) => void; readonly isEndless: boolean };

/** Pauses grow to 5 s, so that the command gives up when the service has been unavailable for about 5 minutes. */
const PATIENCE: RetryOptions = { attempts: 64, pause: 200, longestPause: 5_000, timeout: 30_000 };

/** In milliseconds: the shortest time without the service that is reported. */
const OUTAGE = 1_000;

/**
 * The users of the service that the option `--url` and the environment name; otherwise those of `npm run dev`.
 *
 * @throws {Failure} that names every missing or wrong setting
 */
export function connect(url: string | undefined, variables: Variables, patience: Patience): Users {
  const settings: Variables = { ...variables, ...(url !== undefined && { USERS_URL: url }) };
  const isGiven = settings.USERS_URL || settings.USERS_TOKEN || settings.USERS_TOKEN_URL;
  const service = isGiven ? readSettings(settings) : serviceOfDevelopment(patience.say);
  const retry = { ...PATIENCE, ...(patience.isEndless && { attempts: Number.POSITIVE_INFINITY }) };
  return createUsers({ ...service, retry, fetch: reportOutages(patience) });
}

function readSettings(settings: Variables): Service {
  const { USERS_TOKEN: token, USERS_TOKEN_URL, USERS_CLIENT_ID, USERS_CLIENT_SECRET } = settings;
  const url = (settings.USERS_URL ?? '').trim();
  const isOfApi = /[?#]|\/api\/v1(?:\/users(?:\/[^/]*)?)?\/*$/.test(url);
  const rules: Readonly<Record<string, unknown>> = {
    'set --url or USERS_URL to the base URL of the service': url,
    '--url or USERS_URL must be an http(s) URL without credentials': !url || isAddress(url),
    '--url or USERS_URL must be the base URL, without /api/v1/users/ and without a query':
      !isAddress(url) || !isOfApi,
    'set either USERS_TOKEN or USERS_TOKEN_URL': !token || !USERS_TOKEN_URL,
    'set USERS_TOKEN, or USERS_TOKEN_URL, USERS_CLIENT_ID and USERS_CLIENT_SECRET': token || USERS_TOKEN_URL,
    'USERS_TOKEN must be a token, without spaces or line ends': !token || /^[\x21-\x7e]+$/.test(token),
    'USERS_TOKEN_URL must be an http(s) URL without credentials':
      !USERS_TOKEN_URL || isAddress(USERS_TOKEN_URL),
    'set USERS_CLIENT_ID': !USERS_TOKEN_URL || USERS_CLIENT_ID,
    'set USERS_CLIENT_SECRET': !USERS_TOKEN_URL || USERS_CLIENT_SECRET,
  };
  const faults = Object.keys(rules).filter((rule) => !rules[rule]);
  if (faults.length > 0) throw new Failure(faults.join('\n'), EXIT.wrongUse);
  if (token) return { url, token: () => token };
  return {
    url,
    token: clientCredentials({
      url: USERS_TOKEN_URL ?? '',
      clientId: USERS_CLIENT_ID ?? '',
      clientSecret: USERS_CLIENT_SECRET ?? '',
      fetch: fetchAsCommand,
      ...(settings.USERS_SCOPE && { scope: settings.USERS_SCOPE }),
      ...(settings.USERS_AUDIENCE && { parameters: { audience: settings.USERS_AUDIENCE } }),
    }),
  };
}

function serviceOfDevelopment(say: (text: string) => void): Service {
  const service = readDevelopment();
  if (!service)
    throw new Failure(
      'set --url or USERS_URL, and USERS_TOKEN, or USERS_TOKEN_URL, USERS_CLIENT_ID and USERS_CLIENT_SECRET\n' +
        'Nothing is needed while npm run dev runs in this clone.',
      EXIT.wrongUse,
    );
  say(`Using the service of npm run dev on ${service.url}`);
  return { url: service.url, token: () => readDevelopment()?.token ?? service.token };
}

/** A restarted `npm run dev` has written another token. */
function readDevelopment(): { readonly url: string; readonly token: string } | undefined {
  try {
    return JSON.parse(readFileSync(DEVELOPMENT, 'utf8'));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
    throw new Failure(`${DEVELOPMENT} cannot be read: ${reasonOf(error)}`, EXIT.wrongUse);
  }
}

/** Some firewalls refuse requests without a `User-Agent`, or with that of a runtime. */
const fetchAsCommand: typeof fetch = (input, init) => {
  const request = input instanceof Request ? input : new Request(input, init);
  request.headers.set('user-agent', `user-management-service-client/${VERSION}`);
  return fetch(request);
};

/** `fetch`, which reports once when the service has been unavailable for a second, and once when it responds again. */
function reportOutages({ say, isEndless }: Patience): typeof fetch {
  let since: number | undefined;
  let isReported = false;

  function fail(reason: string): void {
    since ??= performance.now();
    if (isReported || performance.now() - since < OUTAGE) return;
    isReported = true;
    say(`The service is unavailable (${reason}). Trying again${isEndless ? '' : ' for up to 5 minutes'}.`);
  }

  return async (input, init) => {
    const begin = performance.now();
    try {
      const response = await fetchAsCommand(input, init);
      const isLate = isEndOfWait((input as Request).url, response, performance.now() - begin);
      if ([429, 502, 503, 504].includes(response.status) && !isLate) fail(`${response.status}`);
      else {
        if (isReported) say('The service responds again.');
        since = undefined;
        isReported = false;
      }
      return response;
    } catch (error) {
      if (!(input instanceof Request && input.signal.aborted)) fail(reasonOf(error));
      throw error;
    }
  };
}
