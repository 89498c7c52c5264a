import type { IncomingMessage, ServerResponse } from 'node:http';
import { freeBytes } from '../lib/free-bytes.ts';
import { bodyBrokenOff } from '../lib/http-refusals.ts';
import { bodyTooLarge } from '../lib/middleware/receive-body.ts';

/** Reads a request's body once somebody asks for it, and not a byte past the limit. */
export class BodyReader {
  readonly #request: IncomingMessage;
  readonly #response: ServerResponse;
  /** Why the body will not come, once that is known, and who is to be told. */
  #refusal: Error | undefined;
  #onRefusal: ((reason: Error) => void) | undefined;

  constructor(request: IncomingMessage, response: ServerResponse) {
    this.#request = request;
    this.#response = response;
  }

  /**
   * @param limit in bytes
   * @throws {Problem} payload_too_large_error; bad_request_error when the body breaks off
   */
  async read(limit: number): Promise<Buffer> {
    if (this.#refusal) throw this.#refusal;
    // Its caller left before anybody asked for it: it tells no end any more. A request without a body has ended, too.
    if (this.#request.destroyed && !this.#request.readableEnded) throw bodyBrokenOff();
    const { headers } = this.#request;
    if (Number(headers['content-length'] ?? 0) > limit) throw bodyTooLarge(limit);
    if (this.#isWaitedFor()) this.#response.writeContinue();
    return this.#collect(limit);
  }

  /** HTTP/1.0 knows no 100, and without a body there is nothing to go on with (RFC 9110 section 10.1.1). */
  #isWaitedFor(): boolean {
    const { headers, httpVersion, readableEnded } = this.#request;
    return !readableEnded && httpVersion !== '1.0' && headers.expect?.toLowerCase() === '100-continue';
  }

  /** Whether the client may still be sending it. */
  get isToCome(): boolean {
    return !this.#request.complete && this.#refusal === undefined;
  }

  /** Ends the wait for the body, now or when it begins: it rejects with `reason`. */
  refuse(reason: Error): void {
    this.#refusal = reason;
    this.#onRefusal?.(reason);
  }

  async #collect(limit: number): Promise<Buffer> {
    const chunks: Buffer[] = [];
    await this.#flowInto(chunks, limit);
    // The connection remembers the request until the next one comes, and so its listeners, and what they have resolved.
    return joined(chunks.splice(0));
  }

  #flowInto(chunks: Buffer[], limit: number): Promise<void> {
    const request = this.#request;
    let size = 0;
    return new Promise<void>((resolve, reject) => {
      // Of a request without a body nothing more is told (optimizeEmptyRequests).
      if (request.readableEnded) return resolve();
      this.#onRefusal = reject;
      request.on('data', (chunk: Buffer) => {
        size += chunk.length;
        chunks.push(chunk);
        if (size <= limit) return;
        chunks.length = 0;
        // What is still to come flows on and is thrown away, so that the client gets to read the refusal.
        request.removeAllListeners('data').resume();
        reject(bodyTooLarge(limit));
      });
      request.on('end', () => resolve());
      // It closes in any case; an error costs its stack, so there is none for a body that is there.
      request.on('close', () => request.readableEnded || reject(bodyBrokenOff()));
      request.on('error', () => reject(bodyBrokenOff()));
    });
  }
}

/** To join a single one would copy it. */
function joined(chunks: readonly Buffer[]): Buffer {
  const [first] = chunks;
  if (first && chunks.length === 1) return first;
  const all = Buffer.concat(chunks);
  chunks.forEach(freeBytes);
  return all;
}
