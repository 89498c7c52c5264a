/** The parts of a response that the service decides. A JSON body is parsed, and a missing body is ''. */
export interface ServiceResponse {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

export async function readResponse(response: Response): Promise<ServiceResponse> {
  const bytes = Buffer.from(await response.arrayBuffer());
  return createServiceResponse(response.status, Object.fromEntries(response.headers), bytes);
}

/** The Content-Length is left out if it is that of the body, so that a wrong length is visible. */
export function createServiceResponse(
  status: number,
  headers: Record<string, string>,
  body: Buffer,
): ServiceResponse {
  const { date, connection, 'keep-alive': _, 'content-length': length, ...rest } = headers;
  const isRight = length === undefined || length === String(body.length);
  const text = body.toString();
  const isJson = /json/.test(rest['content-type'] ?? '') && text !== '';
  return {
    status,
    headers: isRight ? rest : { ...rest, 'content-length': length },
    body: isJson ? JSON.parse(text) : text,
  };
}
