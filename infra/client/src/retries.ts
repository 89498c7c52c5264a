import { UnexpectedAnswer, WrongValue } from './problem.ts';
import { readText } from './response-content.ts';
import { MAX_TIMER_MS, sleep, withTimeLimit } from './time-limit.ts';

/** How often a request is sent, and how long the pauses are. */
export type RetryOptions = {
  /** Maximum number of attempts, or Infinity; 1 never repeats a request. */
  readonly attempts?: number;
  /** The first pause in milliseconds, if the service names none. Each later one is up to twice as long. */
  readonly pause?: number;
  /** The longest pause in milliseconds, also if `Retry-After` names a longer one. */
  readonly longestPause?: number;
  /** Time limit of an attempt in milliseconds, with the time that its token takes. */
  readonly timeout?: number;
};

/** Statuses of a service, or of a gateway in front of it, that cannot respond now. */
const LATER = new Set([429, 502, 503, 504]);
/** A larger response is not the service's. A page of 1,000 users has at most 5 MiB. */
const MAX_MIB = 64;

/**
 * Repeats a request while the service cannot respond or the response is lost, if it reads, changes or deletes, or
 * creates with an Idempotency-Key. Any other request is sent once, because it may have been carried out.
 */
export function sendAgain(
  send: (copy: () => Request, original: Request) => Promise<Response>,
  { attempts = 4, pause = 200, longestPause = 30_000, timeout = 60_000 }: RetryOptions = {},
): (request: Request) => Promise<Response> {
  refuseWrongAttempts(attempts);
  for (const [name, value] of Object.entries({ pause, longestPause, timeout }))
    if (typeof value !== 'number' || !(value >= 0 && value <= MAX_TIMER_MS))
      throw new WrongValue(`${name} must be from 0 to ${MAX_TIMER_MS}`);

  return async (request) => {
    // `clone` would make two streams of the content. Some browsers have no `body` of a request.
    const hasContent = ['POST', 'PATCH'].includes(request.method);
    const content = hasContent && { body: await request.arrayBuffer() };
    const most = request.method === 'POST' && !request.headers.has('idempotency-key') ? 1 : attempts;
    for (let attempt = 1; ; attempt += 1) {
      const begin = performance.now();
      const receive = async (signal: AbortSignal) =>
        withContent(await send(() => new Request(request, { signal, ...content }), request));
      const answer = await withTimeLimit(timeout, request.signal, receive).catch((error: unknown) => {
        if (attempt === most || isRefusedToken(error)) throw error;
        return undefined;
      });
      if (answer && isEndOfWait(request.url, answer, performance.now() - begin)) {
        const page = emptyPage(request.url);
        if (page) return page;
        attempt = 0;
      } else if (answer && (attempt === most || !isForLater(answer))) {
        if (attempt > 1) again.add(answer);
        return answer;
      } else await sleep(pauseBefore(answer, attempt), request.signal);
    }
  };

  function pauseBefore(answer: Response | undefined, attempt: number): number {
    const asked = parseRetryAfter(answer?.headers.get('retry-after') ?? '');
    const own = Math.random() * pause * 2 ** Math.min(attempt, 31);
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

export function refuseWrongAttempts(attempts: unknown): void {
  if (attempts !== Number.POSITIVE_INFINITY && !(Number.isInteger(attempts) && (attempts as number) >= 1))
    throw new WrongValue('attempts must be an integer from 1, or Infinity');
}

/** The response with its whole content. A response that breaks off counts as lost. */
async function withContent(answer: Response): Promise<Response> {
  const text = await readText(answer, MAX_MIB);
  return Object.assign(answer, { text: async () => text, json: async () => JSON.parse(text) });
}

/** Whether a gateway has ended a request that waits for changes: not the service, and not before half of the wait. */
export function isEndOfWait(url: string, { status, headers }: Response, milliseconds: number): boolean {
  const wait = Number(new URL(url).searchParams.get('wait')) * 1000;
  const isOfService = headers.get('content-type')?.startsWith('application/problem+json');
  return [502, 503, 504].includes(status) && !isOfService && wait > 0 && milliseconds > wait / 2;
}

/** A page without a change, whose link leads to the same cursor. Undefined without one, and for `now`, which moves on. */
function emptyPage(url: string): Response | undefined {
  const { search, searchParams } = new URL(url);
  if ([null, 'now'].includes(searchParams.get('cursor'))) return undefined;
  const headers = { 'content-type': 'application/json', link: `<${search}>; rel="next"` };
  return new Response('[]', { headers });
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

/** Whether the request was repeated, so that this may be the response to its own effect. */
export const wasSentAgain = (answer: Response): boolean => again.has(answer);
