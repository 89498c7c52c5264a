import { findLink } from './link.ts';
import { type Problem, ProblemError } from './problem.ts';
import { isOfSamePath, requestUrlOf } from './service-response.ts';

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

/** The query of the link to the next page, which may be any reference of RFC 3986. Undefined without such a link. */
export function nextQuery(response: Response): Record<string, string> | undefined {
  const reference = findLink(response.headers.get('link') ?? '', 'next');
  const url = requestUrlOf(response);
  const target = parseUrl(reference, url);
  if (reference === undefined || url === undefined || target === undefined) return undefined;
  // Scheme and host are those of a server behind a proxy. The proxy may have removed the beginning of the path.
  const hasPath = !/^(?:[^:/?#]+:)?(?:\/\/[^/?#]*)?(?:[?#]|$)/.test(reference);
  return hasPath && !isOfSamePath(target.pathname, url) ? undefined : Object.fromEntries(target.searchParams);
}

function parseUrl(reference: string | undefined, base: string | undefined): URL | undefined {
  try {
    return new URL(String(reference), base);
  } catch {
    return undefined;
  }
}
