import type { TokenSource } from './client-credentials.ts';
import { WrongValue } from './problem.ts';

const sent = new WeakMap<Request, string[]>();

/** The tokens with which a request was sent. */
export function tokensOf(request: Request): readonly string[] {
  return sent.get(request) ?? [];
}

/** Sends requests with a token, and once more with another token if the service refuses the first one (401). */
export function authorize(
  send: (request: Request) => Promise<Response>,
  tokens: TokenSource,
): (copy: () => Request, original: Request) => Promise<Response> {
  return async (copy, original) => {
    const token = await tokens();
    const answer = await send(withToken(copy(), token, original));
    if (answer.status !== 401) return answer;
    const another = await tokens(token);
    if (another === token) return answer;
    await answer.body?.cancel();
    return send(withToken(copy(), another, original));
  };
}

function withToken(request: Request, token: string, original: Request): Request {
  // The message of `Headers` would quote the token.
  if (typeof token !== 'string' || !/^[\x21-\x7e]+$/.test(token))
    throw new WrongValue('the token source must return a token of visible ASCII characters');
  sent.set(original, [...tokensOf(original), token]);
  request.headers.set('authorization', `Bearer ${token}`);
  return request;
}
