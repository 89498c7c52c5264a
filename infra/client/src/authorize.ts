import type { TokenSource } from './client-credentials.ts';
import type { CopyRequest } from './request-copies.ts';

/** Sends requests with a token, and once more with another token if the service refuses the first one (401). */
export function authorize(
  send: (request: Request) => Promise<Response>,
  tokens: TokenSource,
): (copy: CopyRequest) => Promise<Response> {
  return async (copy) => {
    const token = await tokens();
    const answer = await send(withToken(copy(), token));
    if (answer.status !== 401) return answer;
    const another = await tokens(token);
    if (another === token) return answer;
    await answer.body?.cancel();
    return send(withToken(copy(), another));
  };
}

function withToken(request: Request, token: string): Request {
  request.headers.set('authorization', `Bearer ${token}`);
  return request;
}
