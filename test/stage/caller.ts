import type { startIssuer } from './tokens.ts';
import { until } from './until.ts';

type Issuer = Pick<Awaited<ReturnType<typeof startIssuer>>, 'sign'>;

/** Sends requests to `url` with a token that has both roles, and a JSON body. `init` overrides everything. */
export function callerOf(url: string, issuer: Issuer) {
  return async (method: string, path: string, body?: unknown, init: RequestInit = {}): Promise<Response> => {
    const headers = new Headers({ authorization: `Bearer ${await issuer.sign()}` });
    if (body !== undefined) headers.set('content-type', 'application/json');
    for (const [name, value] of new Headers(init.headers)) headers.set(name, value);
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    return fetch(url + path, { method, ...content, ...init, headers });
  };
}

/** Waits until /ready is 200. */
export async function untilReady(url: string): Promise<void> {
  const isReady = async () => (await fetch(`${url}/ready`).catch(() => undefined))?.ok;
  await until('/ready is 200', isReady);
}
