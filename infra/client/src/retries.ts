import { UnexpectedAnswer, WrongValue } from './problem.ts';
import { type CopyRequest, readForCopies } from './request-copies.ts';

/** How often a request is sent, and how long the pauses are. */
export type RetryOptions = {
  /** Maximum number of attempts; 1 never repeats a request. */
  readonly attempts?: number;
  /** The first pause in milliseconds, if the service names none. Each later one is up to twice as long. */
  readonly pause?: number;
  /** The longest pause in milliseconds, whatever the service names. */
  readonly longestPause?: number;
  /** Time limit of an attempt in milliseconds. */
  readonly timeout?: number;
};

/** Statuses of a service, or of a gateway in front of it, that cannot respond now. */
const LATER = new Set([429, 502, 503, 504]);

/**
 * Repeats a request while the service cannot respond or the response is lost, if it reads, changes or deletes, or
 * creates with an Idempotency-Key. Any other request is sent once, because it may have been carried out.
 */
export function sendAgain(
  send: (copy: CopyRequest, original: Request) => Promise<Response>,
  { attempts = 4, pause = 200, longestPause = 30_000, timeout = 60_000 }: RetryOptions = {},
): (request: Request) => Promise<Response> {
  return async (request) => {
    const copy = await readForCopies(request);
    const most = request.method === 'POST' && !request.headers.has('idempotency-key') ? 1 : attempts;
    for (let attempt = 1; ; attempt += 1) {
      const limit = startLimit(timeout);
      const signal = AbortSignal.any([request.signal, limit.signal]);
      const answer = await receive(send(() => copy({ signal }), request))
        .catch((error: unknown) => {
          if (attempt === most || request.signal.aborted || isRefusedToken(error)) throw error;
          return undefined;
        })
        .finally(limit.clear);
      if (answer && (attempt === most || !isForLater(answer))) {
        return attempt > 1 ? marked(answer) : answer;
      }
      await sleep(pauseBefore(answer, attempt), request.signal);
    }
  };

  function pauseBefore(answer: Response | undefined, attempt: number): number {
    const asked = parseRetryAfter(answer?.headers.get('retry-after') ?? '');
    const own = Math.random() * pause * 2 ** attempt;
    return Math.min(asked >= 0 ? asked + own : own, longestPause);
  }
}

/** In milliseconds: the time that `Retry-After` names, in seconds or as a date (RFC 9110 section 10.2.3); NaN without one. */
export function parseRetryAfter(text: string): number {
  if (/^\d/.test(text)) return Number(text) * 1000;
  // The oldest of the three formats of a date names no time zone, and all of them are in UTC.
  return /^[A-Z][a-z]{2}/.test(text)
    ? Date.parse(text.replace(/(?: GMT)?$/, ' GMT')) - Date.now()
    : Number.NaN;
}

/**
 * A time limit that `clear` ends. The signal of `AbortSignal.timeout` would keep each request in memory until its time is up,
 * although the response has arrived.
 */
function startLimit(milliseconds: number) {
  const controller = new AbortController();
  const expire = () => controller.abort(new DOMException('The attempt took too long.', 'TimeoutError'));
  const timer = setTimeout(expire, milliseconds);
  return { signal: controller.signal, clear: () => clearTimeout(timer) };
}

/** The response with its whole content. A response that breaks off counts as lost. */
async function receive(sending: Promise<Response>): Promise<Response> {
  const answer = await sending;
  // A redirect that is not followed has no status in some runtimes, and cannot be copied.
  if (answer.body === null || answer.status === 0) return answer;
  const content = await answer.arrayBuffer();
  return new Response(content.byteLength === 0 ? null : content, answer);
}

/** Whether the authorization server refuses to issue a token, or the token cannot be sent, as it will again. */
function isRefusedToken(error: unknown): boolean {
  return error instanceof WrongValue || (error instanceof UnexpectedAnswer && !LATER.has(error.status));
}

/** 409 with Retry-After: the first request with this Idempotency-Key is still in progress. */
function isForLater({ status, headers }: Response): boolean {
  return LATER.has(status) || (status === 409 && headers.has('retry-after'));
}

const again = new WeakSet<Response>();

function marked(answer: Response): Response {
  again.add(answer);
  return answer;
}

/** Whether the request was repeated, so that this may be the response to its own effect. */
export function wasSentAgain(answer: Response): boolean {
  return again.has(answer);
}

function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal.aborted) return reject(signal.reason);
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener('abort', stop);
      resolve();
    }, milliseconds);
    signal.addEventListener('abort', stop, { once: true });
  });
}
