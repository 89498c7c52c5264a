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
