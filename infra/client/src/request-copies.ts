/** Copies a request with its content. */
export type CopyRequest = (init?: RequestInit) => Request;

/**
 * Reads the content of a request once, and returns a function that copies the request for each attempt. `clone` would make
 * two streams of the content, which costs memory and time for a batch. Some browsers have no `body` of a request.
 */
export async function readForCopies(request: Request): Promise<CopyRequest> {
  if (!['POST', 'PATCH'].includes(request.method)) return (init) => new Request(request, init);
  const body = await request.arrayBuffer();
  return (init) => new Request(request, { ...init, body });
}
