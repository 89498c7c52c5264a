import { excerpt, isAddress, UnexpectedAnswer, WrongValue } from './problem.ts';
import { parseJson, readText } from './response-content.ts';
import { withTimeLimit } from './time-limit.ts';

/** A source of access tokens. `refused` is a token that the service refused: the source must return another one. */
export type TokenSource = (refused?: string) => string | Promise<string>;

/** A client of the authorization server, and further parameters of its token endpoint (such as `audience`). */
export type ClientCredentials = {
  /** The token endpoint. */
  readonly url: string;
  readonly clientId: string;
  readonly clientSecret?: string;
  readonly scope?: string;
  /** Where the secret is sent: HTTP Basic, as every server must support (RFC 6749 section 2.3.1), or the body. */
  readonly authenticateBy?: 'basic' | 'body';
  readonly parameters?: Readonly<Record<string, string>>;
  readonly fetch?: typeof fetch;
};

/** In milliseconds. A token is renewed so long before it expires, or a tenth of its lifetime, if that is shorter. */
const MARGIN = 30_000;
const TIME_LIMIT_MS = 15_000;
const MAX_MIB = 1;

/** Tokens by the client credentials grant (RFC 6749 section 4.4): one at a time, renewed before it expires. */
export function clientCredentials(credentials: ClientCredentials): TokenSource {
  if (!isAddress(credentials?.url)) throw new WrongValue('url must be an http(s) URL without credentials');
  if (typeof credentials.clientId !== 'string') throw new WrongValue('clientId must be a text');
  let current: { readonly token: string; readonly renewAt: number } | undefined;
  let underWay: Promise<string> | undefined;

  async function renew(): Promise<string> {
    const asked = Date.now();
    const ask = (signal: AbortSignal) => askForToken(credentials, signal);
    const { access_token, expires_in } = await withTimeLimit(TIME_LIMIT_MS, undefined, ask);
    const life = (expires_in >= 0 ? expires_in : 300) * 1000;
    current = { token: access_token, renewAt: asked + life - Math.min(MARGIN, life / 10) };
    return access_token;
  }

  return (refused) => {
    if (current && current.token !== refused && Date.now() < current.renewAt) return current.token;
    underWay ??= renew().finally(() => {
      underWay = undefined;
    });
    return underWay;
  };
}

async function askForToken(credentials: ClientCredentials, signal: AbortSignal) {
  const { url, clientId, clientSecret, scope, authenticateBy = 'basic', parameters } = credentials;
  const isBasic = clientSecret !== undefined && authenticateBy === 'basic';
  const response = await (credentials.fetch ?? fetch)(url, {
    method: 'POST',
    headers: {
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
      ...(isBasic && { authorization: `Basic ${btoa(`${encoded(clientId)}:${encoded(clientSecret)}`)}` }),
    },
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      ...(scope !== undefined && { scope }),
      ...(!isBasic && { client_id: clientId }),
      ...(!isBasic && clientSecret !== undefined && { client_secret: clientSecret }),
      ...parameters,
    }).toString(),
    // The secret is sent to this server only.
    redirect: 'manual',
    signal,
  });
  const { access_token, expires_in, error } = Object(parseJson(await readText(response, MAX_MIB)));
  if (response.ok && typeof access_token === 'string' && access_token !== '')
    return { access_token, expires_in: Number(expires_in ?? Number.NaN) };
  const reason =
    typeof error === 'string'
      ? excerpt(error, clientSecret ? [clientSecret] : [])
      : 'the response is not a token response of OAuth 2.0';
  throw new UnexpectedAnswer(response.status, `no token from ${url.replace(/[?#].*/s, '')}: ${reason}`);
}

/** Form-encoded (RFC 6749 section 2.3.1). */
function encoded(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1);
}
