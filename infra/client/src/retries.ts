/** How often a request is sent, and how long is waited. */
export type RetryOptions = {
  /** How often it is sent at most; 1 never sends it again. */
  readonly attempts?: number;
  /** The first pause in milliseconds, where the service names none; each later one is up to twice as long. */
  readonly pause?: number;
  /** The longest pause in milliseconds, whatever the service names. */
  readonly longestPause?: number;
  /** After so many milliseconds an attempt is given up. */
  readonly timeout?: number;
};

/** Answers of a service or of a gateway in front of it that cannot answer now. */
const LATER = new Set([429, 502, 503, 504]);

/**
 * Sends a request again while the service cannot answer, or the answer is lost: one that reads, changes or deletes, and
 * one that creates under an Idempotency-Key. Any other is sent once, for it may have been carried out.
 */
export function sendAgain(
  send: (request: Request) => Promise<Response>,
  { attempts = 4, pause = 200, longestPause = 30_000, timeout = 60_000 }: RetryOptions = {},
): (request: Request) => Promise<Response> {
  return async (request) => {
    const most = request.method === 'POST' && !request.headers.has('idempotency-key') ? 1 : attempts;
    for (let attempt = 1; ; attempt += 1) {
      const signal = AbortSignal.any([request.signal, AbortSignal.timeout(timeout)]);
      const sent = new Request(request.clone(), { signal });
      const answer = await send(sent).catch((error: unknown) => {
        if (attempt === most || request.signal.aborted) throw error;
        return undefined;
      });
      if (answer && (attempt === most || !isForLater(answer))) {
        return attempt > 1 ? marked(answer) : answer;
      }
      await answer?.body?.cancel();
      await sleep(pauseBefore(answer, attempt), request.signal);
    }
  };

  function pauseBefore(answer: Response | undefined, attempt: number): number {
    const asked = Number(answer?.headers.get('retry-after') ?? Number.NaN) * 1000;
    const own = Math.random() * pause * 2 ** attempt;
    return Math.min(asked >= 0 ? asked + own : own, longestPause);
  }
}

/** 409 with Retry-After: the first request with this Idempotency-Key is still being carried out. */
function isForLater({ status, headers }: Response): boolean {
  return LATER.has(status) || (status === 409 && headers.has('retry-after'));
}

const again = new WeakSet<Response>();

function marked(answer: Response): Response {
  again.add(answer);
  return answer;
}

/** Whether the request had been sent before, so that this may be the answer to its own effect. */
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
