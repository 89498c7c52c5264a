import { isDeepStrictEqual } from 'node:util';
import { type Request, USERS } from '../lab/load/wire.ts';
import { type RawRequest, type RawResponse, sendTo } from '../stage/raw-request.ts';
import { until } from '../stage/until.ts';
import type { Credentials } from './stage/credentials.ts';
import { emailOf, idOf } from './stage/users.ts';
import type { Workload } from './workloads.ts';

/** How many requests of each workload are compared. */
export const SAMPLES = 3;

/** A target lacks a workload when it answers so. */
const LACKING: readonly number[] = [404, 405, 422, 501];

export type Sample = { readonly responses: readonly unknown[]; readonly prepared: string };

/** The request that is sent, with these fields and those of the token and the body. */
export function rawRequest({ method, target, token, body }: Request, given: RawRequest['fields'] = []) {
  const fields = [...given];
  if (token !== undefined) fields.push(['Authorization', `Bearer ${token}`]);
  if (body !== undefined) fields.push(['Content-Type', 'application/json']);
  return { method, target, fields, body: Buffer.from(body ?? '') };
}

const send = (port: number, request: Request) =>
  sendTo(`http://127.0.0.1:${port}`, rawRequest(request, [['X-Request-ID', 'compared']]));

/** Waits until a target can answer with a user: it may still look for PostgreSQL or for keys. */
export async function untilServing(port: number, { token }: Credentials): Promise<void> {
  const ask = () => send(port, { method: 'GET', target: USERS + idOf(1), token }).catch(() => undefined);
  await until('a user is answered', async () => (await ask())?.status === 200);
}

/** The responses of a target to some requests of a workload, and the result of its preparation; undefined if it lacks it. */
export async function sampleOf(
  port: number,
  workload: Workload,
  { token, fresh }: Credentials,
  users: number,
): Promise<Sample | undefined> {
  const ask = (target: string) => send(port, { method: 'GET', target, token });
  const prepared = workload.prepare ? await workload.prepare(ask, users) : '';
  if (prepared === undefined) return undefined;
  // The same users for every target; what is written is not read again.
  let user = workload.writes ? 1 : 2;
  const anyUser = () => (user += Math.floor(users / 7));
  const next = workload.requests({ anyUser, token, freshTokens: fresh, begin: 0, prepared });
  const responses: unknown[] = [];
  for (let sample = 0; sample < SAMPLES; sample += 1) {
    const response = await send(port, next());
    if (response.status !== workload.status && LACKING.includes(response.status)) return undefined;
    responses.push(comparable(response, workload));
  }
  return { responses, prepared };
}

/** Rejects unless both answered the same: status, media type, and all of the body that is not new each time. */
export function demandSame(sample: Sample, reference: Sample): void {
  if (isDeepStrictEqual(sample.responses, reference.responses)) return;
  throw new Error(
    `it answers ${JSON.stringify(sample.responses).slice(0, 400)}, not ${JSON.stringify(reference.responses).slice(0, 400)}`,
  );
}

function comparable({ status, headers, body }: RawResponse, { name, varying = [] }: Workload): unknown {
  const [mediaType] = (headers['content-type'] ?? '').split(';');
  const isNamed = name === 'health' || headers['x-request-id'] === 'compared';
  const withoutVarying = (_: string, value: unknown) =>
    value instanceof Object && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).filter(([member]) => !varying.includes(member)))
      : value;
  return { status, mediaType, isNamed, body: JSON.parse(body, withoutVarying) };
}

/** Rejects unless the target refuses whom it must not serve, and what it must not take. */
export async function demandRefusals(port: number, credentials: Credentials): Promise<void> {
  const { token, refused, withoutRole } = credentials;
  const user = { method: 'GET', target: USERS + idOf(1) } as const;
  const creation = (email: string) =>
    ({ method: 'POST', target: USERS, token, body: JSON.stringify({ email }) }) as const;
  const refusals: readonly (readonly [what: string, request: Request, status: number])[] = [
    ['a request without a token', user, 401],
    ...Object.entries(refused).map(([what, of]) => [`a token ${what}`, { ...user, token: of }, 401] as const),
    ['a token with a signature changed', { ...user, token: forged(token) }, 401],
    ['a token without the role', { ...user, token: withoutRole }, 403],
    ['an unknown user', { ...user, target: USERS + idOf(999_999_999_999), token }, 404],
    ['what is no id', { ...user, target: `${USERS}none`, token }, 422],
    ['what is no address', creation('none'), 422],
    ['an address that is taken', creation(emailOf(1).toUpperCase()), 409],
  ];
  for (const [what, request, wanted] of refusals) {
    const { status } = await send(port, request);
    if (status !== wanted) throw new Error(`it answers ${what} with ${status}, not ${wanted}`);
  }
}

function forged(token: string): string {
  const [header, payload, signature = ''] = token.split('.');
  return [header, payload, signature.split('').reverse().join('')].join('.');
}
