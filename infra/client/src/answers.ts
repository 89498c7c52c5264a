import { findLink } from './link.ts';
import { type Problem, ProblemError } from './problem.ts';

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

/**
 * The query of the link to the next page of this path. Undefined without such a link. A proxy may have removed the beginning
 * of the path.
 */
export function nextQuery({ headers }: Response, path: string): Record<string, string> | undefined {
  const target = findLink(headers.get('link') ?? '', 'next');
  if (target === undefined || !URL.canParse(target, 'http://service.invalid')) return undefined;
  const { pathname, searchParams } = new URL(target, 'http://service.invalid');
  // The id of a user may be in any case.
  const isOfPath = `${pathname}/`.replace(/\/\/$/, '/').toLowerCase().endsWith(path.toLowerCase());
  return isOfPath ? Object.fromEntries(searchParams) : undefined;
}
