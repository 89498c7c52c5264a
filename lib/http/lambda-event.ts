import type { GatewayEvent } from './gateway.ts';
import { encodePath } from './path.ts';

/** Segments of unreserved characters (RFC 3986 section 2.3). */
const BASE_PATH = /^\/(?!\/)[\w\-.~/]*$/;

type Texts = Readonly<Record<string, string | undefined>>;

/** The input of a function. Any member may be missing. */
export type InvocationEvent = {
  readonly rawPath?: string | null | undefined;
  readonly rawQueryString?: string | null | undefined;
  readonly queryStringParameters?: Texts | null | undefined;
  readonly headers?: Texts | null | undefined;
  readonly requestContext?: { readonly http?: Texts | null; readonly stage?: string } | null | undefined;
  readonly body?: unknown;
  readonly isBase64Encoded?: boolean | null | undefined;
};

/**
 * The input of AWS Lambda as the event that handlers take. API Gateway fills in every member. Function URLs and
 * emulators omit some, and some of them write header names in any case. `ownMethod` is the method of the function.
 *
 * @see AWS, API Gateway developer guide, "Create AWS Lambda proxy integrations for HTTP APIs", payload format 2.0
 */
export function toGatewayEvent(given: InvocationEvent | null | undefined, ownMethod = 'GET'): GatewayEvent {
  const { http, stage } = given?.requestContext ?? {};
  const path = [given?.rawPath, http?.path].find((text) => typeof text === 'string') ?? '/';
  return {
    rawPath: encodePath(removeStage(path, stage)),
    basePath: findBasePath(path),
    rawQueryString: given?.rawQueryString || formatQuery(given?.queryStringParameters ?? {}),
    headers: joinHeaders(given?.headers ?? {}),
    requestContext: { http: { method: http?.method ?? ownMethod } },
    body: typeof given?.body === 'string' ? given.body : undefined,
    isBase64Encoded: given?.isBase64Encoded === true,
  };
}

/** A stage with a name of its own precedes the path. */
function removeStage(path: string, stage: string | undefined): string {
  const prefix = `/${stage}`;
  if (!stage || stage === '$default' || !`${path}/`.startsWith(`${prefix}/`)) return path;
  return path.slice(prefix.length) || '/';
}

/**
 * A stage or a base path as a caller must send it. Empty if it could be anything else in a URI reference: `//` begins an
 * authority (RFC 3986 section 4.2).
 */
function findBasePath(path: string): string {
  const before = path.slice(0, Math.max(path.lastIndexOf('/api/v1/'), 0));
  return BASE_PATH.test(before) ? before : '';
}

function formatQuery(parameters: Texts): string {
  return String(new URLSearchParams(parameters as Record<string, string>));
}

/** By their names in lower case. Headers whose names differ in case only are one value. */
function joinHeaders(given: Texts): GatewayEvent['headers'] {
  const headers: Record<string, string> = Object.create(null);
  for (const [field, value] of Object.entries(given)) {
    const name = field.toLowerCase();
    if (value != null) headers[name] = name in headers ? `${headers[name]}, ${value}` : String(value);
  }
  return headers;
}
