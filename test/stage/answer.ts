/** All of an answer that the service decides; a body of JSON is parsed, and none is ''. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: unknown;
}

/** A length is left out where it is that of the body, so that a wrong one stands out. */
export function answerWith(status: number, headers: Record<string, string>, body: Buffer): Answer {
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
