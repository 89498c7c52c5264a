let callbacks: (() => void)[] = [];

/**
 * Calls back at the end of this turn of the event loop, when all has been read that came in it; also what is asked for
 * there, and not a turn later: a group that was gathered until then goes out with the write of the same turn.
 */
export function atEndOfTurn(callback: () => void): void {
  callbacks.push(callback);
  if (callbacks.length === 1) setImmediate(callAll);
}

function callAll(): void {
  for (const callback of callbacks) callback();
  callbacks = [];
}
