import type { MiddlewareCallbackParams } from 'openapi-fetch';
import { tokensOf } from './authorize.ts';
import { Problem as isProblem, OPERATIONS } from './checks.ts';
import { type Problem, ProblemError, UnexpectedAnswer, WrongValue } from './problem.ts';
import { parseJson } from './response-content.ts';

/** Ends a request, or a sequence of requests. */
export type Signal = { readonly signal?: AbortSignal };

/** The result of a request. */
export type Taken<Data> = { readonly data: Data; readonly response: Response };

type Answer<Data> = { readonly data?: Data; readonly error?: unknown; readonly response: Response };

/**
 * @throws {ProblemError} unless the request was successful
 */
export async function succeeded<Data>(
  call: Answer<Data> | Promise<Answer<Data>>,
): Promise<Taken<NonNullable<Data>>> {
  const { data, error, response } = await call;
  if (response.ok) return { data: data as NonNullable<Data>, response };
  // The name of the header is a setting of the service. This is its default.
  throw new ProblemError(error as Problem, response.headers.get('x-request-id') ?? undefined);
}

type Call = MiddlewareCallbackParams;
/** A check of a schema, and the faults that it found last. */
type Check = {
  (value: unknown): boolean;
  readonly errors?: readonly { readonly instancePath: string; readonly message?: string }[] | null;
};
type Place = 'path' | 'query' | 'header';
type Operation = Readonly<Record<Place, Check>> & {
  readonly responses: Readonly<Record<string, Readonly<Record<string, Check>>>>;
};

type Received = { readonly url: string; readonly createError: (reason: string) => UnexpectedAnswer };
const received = new WeakMap<Response, Received>();

/** Refuses values that the OpenAPI document does not allow in a path, a query or a header, before anything is sent. */
export function refuseWrongValues({ schemaPath, request, params }: Call): undefined {
  const operation = operationOf(schemaPath, request.method);
  for (const place of ['path', 'query', 'header'] as const) {
    const values: Readonly<Record<string, unknown>> = params[place] ?? {};
    // It would select other users.
    const missing = Object.keys(values).find((name) => values[name] === undefined);
    const fault = missing ? ` /${missing} must be present` : operation && faultOf(operation[place], values);
    if (fault) throw new WrongValue(`${place}${fault}`);
  }
}

/** Accepts a response that the operation has, or a problem document of the service. Others are an `UnexpectedAnswer`. */
export async function acceptResponse(call: Call & { readonly response: Response }): Promise<undefined> {
  const { schemaPath, request, response } = call;
  const operation = operationOf(schemaPath, request.method);
  if (operation === undefined) return;
  const text = await response.text();
  const { status, headers } = response;
  const createError = (reason: string) =>
    new UnexpectedAnswer(status, reason, {
      contentType: headers.get('content-type') ?? '',
      // Of an address, a message has no query.
      content: `${(headers.get('location') ?? '').replace(/[?#].*/s, '')} ${text}`,
      secrets: tokensOf(request),
    });
  received.set(response, { url: request.url, createError });
  const type = headers.get('content-type')?.split(';', 1)[0]?.trim().toLowerCase() ?? '';
  const isRefusal = status >= 400 && type === 'application/problem+json';
  const declared = isRefusal ? { [type]: isProblem as Check } : operation.responses[status];
  if (!declared || (status === 304 && !request.headers.has('if-none-match')))
    throw createError('not a status of this operation');
  if (Object.keys(declared).length === 0) return;
  const check = declared[type];
  if (!check) throw createError('not a content type of this operation');
  const data = parseJson(text);
  const fault = faultOf(check, data);
  if (fault) throw createError(`not the content of this operation,${fault}`);
  if (isRefusal && !isAbout(data as Problem, status, request))
    throw createError('not a problem of the service');
  // The content has been read, and is read once more by openapi-fetch.
  Object.assign(response, { text: async () => text, json: async () => data });
}

/** The error for a response that has the form of the service's, and cannot be the service's. */
export const unexpected = (response: Response, reason: string): UnexpectedAnswer =>
  received.get(response)?.createError(reason) ?? new UnexpectedAnswer(response.status, reason);

/** The address of the request that got this response. */
export const requestUrlOf = (response: Response): string | undefined => received.get(response)?.url;

/** Whether a path ends with the path that the service has for the request. The id of a user may be in any case. */
export function isOfSamePath(path: string, requestUrl: string): boolean {
  const { pathname } = new URL(requestUrl);
  const comparable = (one: string) => `${one}/`.replace(/\/\/$/, '/').toLowerCase();
  return comparable(path).endsWith(comparable(pathname.slice(pathname.lastIndexOf('/api/v1/'))));
}

/** What is wrong with the value of a parameter; undefined if nothing is. */
export function faultOfParameter(path: string, place: Place, values: object): string | undefined {
  return faultOf((operationOf(path, 'GET') as Operation)[place], values);
}

const operationOf = (path: string, method: string): Operation | undefined =>
  (OPERATIONS as Readonly<Record<string, Operation>>)[`${method} ${path}`];

function faultOf(check: Check, value: unknown): string | undefined {
  if (check(value)) return undefined;
  const [{ instancePath = '', message = '' } = {}] = check.errors ?? [];
  return ` ${instancePath} ${message}`;
}

/** Whether a problem document is the service's. The 404 of another path does not mean that there is no such user. */
function isAbout({ type, status, instance }: Problem, received: number, { url }: Request): boolean {
  const isOfPath = status !== 404 || isOfSamePath(instance, url);
  return type.startsWith('urn:svc:error:') && status === received && isOfPath;
}
