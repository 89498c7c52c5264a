/** In milliseconds: how long what is in progress may take after Ctrl-C. */
const GRACE_MS = 10_000;

/** Ends a command in order (`soon`), and at once (`now`). */
export type Stop = { readonly soon: AbortSignal; readonly now: AbortSignal };

/** Ctrl-C and the signals of a service manager stop in order. A second one, or 10 seconds later, stops at once. */
export function stopOnSignals(): Stop {
  const [soon, now] = [new AbortController(), new AbortController()];
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.on(signal, () => {
      if (soon.signal.aborted) now.abort();
      else setTimeout(() => now.abort(), GRACE_MS);
      soon.abort();
    });
  }
  return { soon: soon.signal, now: now.signal };
}
