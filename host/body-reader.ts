import type { IncomingMessage, ServerResponse } from 'node:http';
import { freeBytes } from '../lib/free-bytes.ts';
import { refuseLargeBody } from '../lib/http/middleware/receive-body.ts';
import { refuseIncompleteBody } from '../lib/http/refusals.ts';

/** Reads a request's body when it is requested, and not a byte beyond the limit. */
export class BodyReader {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  /** Why the body will not arrive, once that is known, and the function that reports it. */
  #refusal: Error | undefined;
  #onRefusal: ((reason: Error) => void) | undefined;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
  }

  /**
   * @param limit in bytes
   * @throws {Problem} payload_too_large_error; bad_request_error if the connection ends before the body
   */
  async read(limit: number): Promise<Buffer> {
    if (this.#refusal) throw this.#refusal;
    // The client disconnected before the body was requested, so no event is to come. A request without a body has
    // ended, too.
    if (this.#request.destroyed && !this.#request.readableEnded) throw refuseIncompleteBody();
    const { headers } = this.#request;
    if (Number(headers['content-length'] ?? 0) > limit) throw refuseLargeBody(limit);
    if (this.#isWaitedFor()) this.#response.writeContinue();
    const chunks: Buffer[] = [];
    await this.#flowInto(chunks, limit);
    // The connection keeps the request until the next one arrives, and with it the listeners and the values that they
    // resolved.
    return joined(chunks.splice(0));
  }

  /** HTTP/1.0 does not have 100, and without a body there is nothing to continue (RFC 9110 section 10.1.1). */
  #isWaitedFor(): boolean {
    const { headers, httpVersion, readableEnded } = this.#request;
    return !readableEnded && httpVersion !== '1.0' && headers.expect?.toLowerCase() === '100-continue';
  }

  /** Whether the client may still be sending the body. */
  get isToCome(): boolean {
    return !this.#request.complete && this.#refusal === undefined;
  }

  /** Ends the wait for the body, now or when it begins. The wait rejects with `reason`. */
  refuse(reason: Error): void {
    this.#refusal = reason;
    this.#onRefusal?.(reason);
  }

  #flowInto(chunks: Buffer[], limit: number): Promise<void> {
    const request = this.#request;
    let size = 0;
    return new Promise<void>((resolve, reject) => {
      // A request without a body emits no further events (optimizeEmptyRequests).
      if (request.readableEnded) return resolve();
      this.#onRefusal = reject;
      request.on('data', (chunk: Buffer) => {
        size += chunk.length;
        chunks.push(chunk);
        if (size <= limit) return;
        chunks.length = 0;
        // The rest of the body is received and discarded, so that the client can read the refusal.
        request.removeAllListeners('data').resume();
        reject(refuseLargeBody(limit));
      });
      request.on('end', () => resolve());
      // Every request closes. An error costs its stack, so none is created if the body is complete.
      request.on('close', () => request.readableEnded || reject(refuseIncompleteBody()));
      request.on('error', () => reject(refuseIncompleteBody()));
    });
  }
}

/** Joining a single chunk would copy it. */
function joined(chunks: readonly Buffer[]): Buffer {
  const [first] = chunks;
  if (first && chunks.length === 1) return first;
  const all = Buffer.concat(chunks);
  chunks.forEach(freeBytes);
  return all;
}
