/** Copies a request with its content. */
export type CopyRequest = (init?: RequestInit) => Request;

/**
 * Reads the content of a request once, and returns a function that copies the request for each attempt. `clone` would make
 * two streams of the content, which costs memory and time for a batch.
 */
export async function readForCopies(request: Request): Promise<CopyRequest> {
  const content = request.body === null ? undefined : await request.arrayBuffer();
  return (init = {}) => new Request(request, content === undefined ? init : { ...init, body: content });
}
