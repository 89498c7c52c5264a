import { errorOf } from './problem.ts';

/** Ends a request, or a sequence of requests. */
export type Signal = { readonly signal?: AbortSignal };

/** The result of a request. */
export type Taken<Data> = { readonly data: Data; readonly response: Response };

type Answer<Data> = { readonly data?: Data; readonly error?: unknown; readonly response: Response };

/**
 * @throws {ProblemError | UnexpectedAnswer} unless the request was successful
 */
export async function succeeded<Data>(
  call: Answer<Data> | Promise<Answer<Data>>,
): Promise<Taken<NonNullable<Data>>> {
  const { data, error, response } = await call;
  if (response.ok) return { data: data as NonNullable<Data>, response };
  throw errorOf(response, error);
}

/** The query of the link to the next page (RFC 8288); undefined without such a link. */
export function nextQuery({ headers }: Response): Record<string, string> | undefined {
  const [, target] = /<([^>]*)>\s*;\s*rel="?next"?/.exec(headers.get('link') ?? '') ?? [];
  if (target === undefined) return undefined;
  return Object.fromEntries(new URL(target, 'http://service.invalid').searchParams);
}
