import type { IncomingMessage, ServerResponse } from 'node:http';
import { largeBody } from '../lib/endpoint/request-body.ts';
import { freeBytes } from '../lib/free-bytes.ts';
import type { GatewayEvent } from '../lib/http/gateway.ts';
import { encodePath } from '../lib/http/path.ts';
import { type Problem, unavailable } from '../lib/http/problem.ts';
import { incompleteBody, invalidHostHeader } from '../lib/http/refusals.ts';

/** As in Node.js: the expectation may be one of several. */
const CONTINUE = /(?:^|\W)100-continue(?:$|\W)/i;

/**
 * An HTTP request as the event that API Gateway would have made of it, except that its body is still to come. It is one
 * object with methods. A closure for each method would be most of the memory that the host allocates for a request.
 */
export class RequestEvent implements GatewayEvent {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly rawPath: string;
  readonly rawQueryString: string;
  readonly headers: GatewayEvent['headers'];
  readonly requestContext: GatewayEvent['requestContext'];
  pathParameters: GatewayEvent['pathParameters'];
  body: string | undefined;
  isBase64Encoded = false;
  /** Why the body will not arrive, once that is known, and the function that ends the wait for it. */
  #refusal: Error | undefined;
  #onRefusal: ((reason: Error) => void) | undefined;
  #isContinued = false;

  constructor(request: IncomingMessage, response: ServerResponse) {
    const [path, query] = splitTarget(request.url ?? '/');
    this.request = request;
    this.response = response;
    this.rawPath = encodePath(path);
    this.rawQueryString = query;
    this.headers = request.headers as GatewayEvent['headers'];
    this.requestContext = { http: { method: request.method ?? 'GET' } };
  }

  /**
   * Reads the body. If it exceeds `limit` bytes, none of it is kept.
   *
   * @throws {Problem} payload_too_large_error; bad_request_error if the connection ends first; the reason of `rejectBody`
   */
  async receiveBody(limit: number): Promise<Buffer> {
    if (this.#refusal) throw this.#refusal;
    const { headers, destroyed, readableEnded } = this.request;
    // The client disconnected before the body was requested, so no event is to come. A request without a body has
    // ended, too.
    if (destroyed && !readableEnded) throw incompleteBody();
    if (Number(headers['content-length'] ?? 0) > limit) throw largeBody(limit);
    if (!readableEnded) this.sendContinue();
    const chunks: Buffer[] = [];
    const received = Promise.withResolvers<void>();
    this.#onRefusal = received.reject;
    collectBody(this.request, chunks, limit, received);
    await received.promise;
    // The listeners keep the list.
    return joinChunks(chunks.splice(0));
  }

  /** Whether the client may still be sending the body. */
  get isBodyToCome(): boolean {
    return !this.request.complete && this.#refusal === undefined;
  }

  /** Whether the client has asked for 100, and has not got it. HTTP/1.0 does not have 100 (RFC 9110 section 10.1.1). */
  get expectsContinue(): boolean {
    const { expect } = this.headers;
    const isExpected = expect !== undefined && CONTINUE.test(expect);
    return isExpected && !this.#isContinued && this.request.httpVersion !== '1.0';
  }

  /** Sends 100 once, if the client has asked for it. */
  sendContinue(): void {
    if (!this.expectsContinue) return;
    this.#isContinued = true;
    this.response.writeContinue();
  }

  /** Ends the wait for a body that will not arrive, now or when it begins. The wait rejects with `reason`. */
  rejectBody(reason: Error): void {
    this.#refusal = reason;
    this.#onRefusal?.(reason);
  }

  cancel(): void {
    this.rejectBody(unavailable('the request was cancelled by the shutdown'));
  }
}

/**
 * Collects the chunks of a body. It is not a method, because the connection keeps the request until the next one arrives,
 * and with it the listeners and everything that they can reach.
 */
function collectBody(
  request: IncomingMessage,
  chunks: Buffer[],
  limit: number,
  { resolve, reject }: PromiseWithResolvers<void>,
): void {
  // A request without a body emits no further events (optimizeEmptyRequests).
  if (request.readableEnded) {
    resolve();
    return;
  }
  let size = 0;
  request.on('data', (chunk: Buffer) => {
    size += chunk.length;
    chunks.push(chunk);
    if (size <= limit) return;
    chunks.length = 0;
    // The rest of the body is received and discarded, so that the client can read the refusal.
    request.removeAllListeners('data').resume();
    reject(largeBody(limit));
  });
  request.on('end', () => resolve());
  // Every request closes. An error costs its stack, so none is created if the body is complete.
  request.on('close', () => request.readableEnded || reject(incompleteBody()));
  request.on('error', () => reject(incompleteBody()));
}

/** Joining a single chunk would copy it. */
function joinChunks(chunks: readonly Buffer[]): Buffer {
  const [first] = chunks;
  if (first && chunks.length === 1) return first;
  const all = Buffer.concat(chunks);
  chunks.forEach(freeBytes);
  return all;
}

/** The refusal of a request without exactly one Host header (RFC 9112 section 3.2). HTTP/1.0 needs none. */
export function findHostFault({ request, headers: { host } }: RequestEvent): Problem | undefined {
  if (host === undefined) return request.httpVersion === '1.0' ? undefined : invalidHostHeader();
  // One value may contain a comma.
  const isRepeated = host.includes(',') && request.headersDistinct.host?.length !== 1;
  return isRepeated ? invalidHostHeader() : undefined;
}

/** Path and query of a target, also in the absolute form, which a server must accept (RFC 9112 section 3.2.2). */
function splitTarget(target: string): readonly [path: string, query: string] {
  const origin = target.startsWith('/') ? target : target.replace(/^https?:\/\/[^/?]*\/?/i, '/');
  const at = origin.indexOf('?');
  return at < 0 ? [origin, ''] : [origin.slice(0, at), origin.slice(at + 1)];
}
