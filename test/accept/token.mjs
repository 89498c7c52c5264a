import { CannotJudge } from './deployment.mjs';

/**
 * The source of tokens: `get()` returns the token of all checks, `narrowed(role)` one with this role only, or undefined
 * if the source cannot issue it.
 *
 * @throws {CannotJudge} from `get`
 */
export function tokenSource(credentials) {
  const { token: given, tokenUrl, scope } = credentials;
  return {
    async get() {
      if (given) return given;
      if (!tokenUrl) throw new CannotJudge('there is no token: see ACCEPT_TOKEN and ACCEPT_TOKEN_URL');
      return fetchToken(credentials, scope);
    },
    async narrowed(role) {
      const wanted = scope === undefined ? role : wordsOf(scope).find((word) => word.endsWith(role));
      if (given || !wanted) return undefined;
      const token = await fetchToken(credentials, wanted).catch(() => undefined);
      return token && hasRole(token, role) && isNarrow(token, role) ? token : undefined;
    },
  };
}

const ROLES = ['users.read', 'users.write', 'users.delete', 'api.superuser'];

const isNarrow = (token, role) => ROLES.every((other) => other === role || !namesRole(token, other));

/** Whether any claim of the token has the role. False if the token cannot be read. */
export const hasRole = (token, role) => namesRole(token, role) || namesRole(token, 'api.superuser');

function namesRole(token, role) {
  const isNamed = (value) =>
    typeof value === 'string'
      ? wordsOf(value).includes(role)
      : typeof value === 'object' && value !== null && Object.values(value).some(isNamed);
  return isNamed(claimsOf(token) ?? {});
}

const wordsOf = (text) => text.split(' ').filter(Boolean);

/** The claims of a token, unverified. Undefined if it is not a signed JWT. */
export function claimsOf(token) {
  try {
    const [, payload, signature] = token.split('.');
    return signature ? JSON.parse(Buffer.from(payload, 'base64url').toString()) : undefined;
  } catch {
    return undefined;
  }
}

/** By HTTP Basic, which every server must support (RFC 6749 section 2.3.1). For others the body has the credentials. */
async function fetchToken({ tokenUrl, clientId, clientSecret }, scope) {
  const form = { grant_type: 'client_credentials', ...(scope && { scope }) };
  const isPublic = clientSecret === undefined;
  const inBody = { ...form, client_id: clientId, ...(!isPublic && { client_secret: clientSecret }) };
  const basic = Buffer.from(`${formEncoded(clientId)}:${formEncoded(clientSecret)}`).toString('base64');
  const answer = !isPublic && (await post(tokenUrl, form, { authorization: `Basic ${basic}` }));
  return tokenIn(answer.ok ? answer : await post(tokenUrl, inBody));
}

const formEncoded = (text) => new URLSearchParams([['', text]]).toString().slice(1);

async function post(url, form, headers = {}) {
  const body = new URLSearchParams(form);
  const signal = AbortSignal.timeout(15_000);
  try {
    const response = await fetch(url, { method: 'POST', headers, body, signal });
    return { ok: response.ok, status: response.status, text: await response.text() };
  } catch (error) {
    throw new CannotJudge(`the token endpoint does not answer: ${error.cause?.message || error.message}`);
  }
}

/** Neither the token nor the provider's text about the secret is printed. */
function tokenIn({ ok, status, text }) {
  let answer = {};
  try {
    answer = JSON.parse(text);
  } catch {}
  if (ok && typeof answer.access_token === 'string') return answer.access_token;
  throw new CannotJudge(`the token endpoint answers ${status} ${String(answer.error ?? '').slice(0, 60)}`);
}
