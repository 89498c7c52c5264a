import type { IncomingMessage, ServerResponse } from 'node:http';
import { type RecalledEvent, VERIFIED_TOKEN } from '../lib/auth/authenticate.ts';
import type { VerifiedToken } from '../lib/auth/token-verifier.ts';
import type { GatewayEvent } from '../lib/http/gateway.ts';
import { encodePath } from '../lib/http/path.ts';
import { type Problem, unavailable } from '../lib/http/problem.ts';
import { refuseHostHeader } from '../lib/http/refusals.ts';
import { BodyReader } from './body-reader.ts';
import type { CountedRequest, RequestsInFlight } from './requests-in-flight.ts';

/**
 * An HTTP request as the event that API Gateway would have made of it, except that its body is still to come. It is one
 * object with methods. A closure for each method would be most of the memory that the host allocates for a request.
 */
export class RequestEvent implements RecalledEvent, CountedRequest {
  readonly rawPath: string;
  readonly rawQueryString: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly requestContext: GatewayEvent['requestContext'];
  pathParameters: GatewayEvent['pathParameters'];
  body: string | undefined;
  isBase64Encoded = false;
  [VERIFIED_TOKEN]: VerifiedToken | undefined;
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  readonly #inFlight: RequestsInFlight;
  readonly #body: BodyReader;

  constructor(request: IncomingMessage, response: ServerResponse, inFlight: RequestsInFlight) {
    const [path, query] = splitTarget(request.url ?? '/');
    this.rawPath = encodePath(path);
    this.rawQueryString = query;
    this.headers = joinHeaders(request.rawHeaders);
    this.requestContext = { http: { method: request.method ?? 'GET' } };
    this.#request = request;
    this.#response = response;
    this.#inFlight = inFlight;
    this.#body = new BodyReader(request, response);
  }

  receiveBody(limit: number): Promise<Buffer> {
    return this.#body.read(limit);
  }

  /** Whether the client may still be sending the body. */
  get isBodyToCome(): boolean {
    return this.#body.isToCome;
  }

  /** Ends the wait for a body that will not arrive. */
  refuseBody(reason: Error): void {
    this.#body.refuse(reason);
  }

  cancel(): void {
    this.refuseBody(unavailable('the request was cancelled by the shutdown'));
  }

  /**
   * The server serves half-open connections, so a client that disconnects closes nothing by itself. Only the end of its
   * data shows it.
   */
  onceDisconnected(onDisconnected: () => void): () => void {
    const response = this.#response;
    const { socket } = this.#request;
    if (socket.readableEnded || response.destroyed) queueMicrotask(onDisconnected);
    socket.on('end', onDisconnected);
    response.on('close', onDisconnected);
    return () => {
      socket.off('end', onDisconnected);
      response.off('close', onDisconnected);
    };
  }

  waitUncounted<Result>(milliseconds: number, wait: (over: AbortSignal) => Promise<Result>): Promise<Result> {
    return this.#inFlight.waitUncounted(this, milliseconds, wait);
  }
}

/** The refusal of a request without exactly one Host header (RFC 9112 section 3.2). HTTP/1.0 needs none. */
export function findHostFault(
  { httpVersion, rawHeaders }: IncomingMessage,
  { headers }: GatewayEvent,
): Problem | undefined {
  if (headers.host === undefined) return httpVersion === '1.0' ? undefined : refuseHostHeader();
  if (!headers.host.includes(',')) return undefined;
  const names = rawHeaders.filter((_header, index) => index % 2 === 0);
  return names.filter((name) => name.toLowerCase() === 'host').length > 1 ? refuseHostHeader() : undefined;
}

/** Path and query of a target, also in the absolute form, which a server must accept (RFC 9112 section 3.2.2). */
export function splitTarget(target: string): readonly [path: string, query: string] {
  const origin = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?]*\/?/i, '/');
  const at = origin.indexOf('?');
  return at < 0 ? [origin, ''] : [origin.slice(0, at), origin.slice(at + 1)];
}

/**
 * An object that inherits from this one has no members of Object's. V8 does not treat it as a dictionary, as it would
 * without a prototype.
 */
const NO_MEMBERS = Object.create(null);

/**
 * Repeated headers are one value (RFC 9110 section 5.3). They are joined so that no token and no request ID looks like
 * a single one. Node would keep only the first.
 */
function joinHeaders(raw: readonly string[]): Record<string, string> {
  const headers: Record<string, string> = Object.create(NO_MEMBERS);
  for (let index = 0; index < raw.length; index += 2) {
    const name = (raw[index] as string).toLowerCase();
    const value = raw[index + 1] as string;
    headers[name] = name in headers ? `${headers[name]}, ${value}` : value;
  }
  return headers;
}
