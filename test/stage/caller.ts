import type { UserBody } from './responses.ts';
import { readResponse, type ServiceResponse } from './service-response.ts';
import type { startIssuer } from './tokens.ts';
import { until } from './until.ts';

type Issuer = Pick<Awaited<ReturnType<typeof startIssuer>>, 'sign'>;

/** A request with a token that has both roles, and a JSON body. `init` overrides everything. */
type Request<Response> = (
  method: string,
  path: string,
  body?: unknown,
  init?: RequestInit,
) => Promise<Response>;

/** Sends requests to `url`, and resolves with complete responses. */
export function callerOf(url: string, issuer: Issuer): Request<ServiceResponse> {
  const send = senderTo(url, issuer);
  return async (...request) => readResponse(await send(...request));
}

/** The same, with responses as fetch has them. */
export function senderTo(url: string, issuer: Issuer): Request<Response> {
  return async (method, path, body, init = {}) => {
    const headers = new Headers({ authorization: `Bearer ${await issuer.sign()}` });
    if (body !== undefined) headers.set('content-type', 'application/json');
    for (const [name, value] of new Headers(init.headers)) headers.set(name, value);
    const content = body === undefined ? {} : { body: JSON.stringify(body) };
    return fetch(url + path, { method, ...content, ...init, headers });
  };
}

export async function untilReady(url: string): Promise<void> {
  const isReady = async () => (await fetch(`${url}/ready`).catch(() => undefined))?.ok;
  await until('/ready is 200', isReady);
}

/** The user that `create` creates. It is called again after a 503, which a busy machine can cause at any time. */
export function untilCreated(create: () => Promise<ServiceResponse>): Promise<UserBody> {
  return until('a user is created', async () => {
    const { status, body } = await create();
    if (status !== 201 && status !== 503) throw new Error(`no user: ${status} ${JSON.stringify(body)}`);
    return status === 201 && (body as UserBody);
  });
}
