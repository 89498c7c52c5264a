import type { Connection } from './connection.ts';

/** Sends a request that is due at this moment; `then` is called when it is answered. */
export type Asking = (connection: Connection, due: number, then: () => void) => void;

/** Each connection asks again as soon as it is answered. */
export function startUnpaced(connections: readonly Connection[], ask: Asking): undefined {
  for (const connection of connections) {
    const again = () => ask(connection, performance.now(), again);
    again();
  }
}

/**
 * Requests are due at regular moments, and sent then if a connection is free, else as soon as one is: the time that
 * is counted begins when a request is due, so that a server that stalls does not hide those that had to wait. It goes
 * on until the timer that it gives is cleared.
 */
export function startPaced(connections: readonly Connection[], rate: number, ask: Asking): NodeJS.Timeout {
  const free = [...connections];
  const begun = performance.now();
  let next = 0;
  const dueAt = (number: number) => begun + (number * 1000) / rate;
  const sendDue = () => {
    while (free.length > 0 && dueAt(next) <= performance.now()) {
      const connection = free.pop() as Connection;
      ask(connection, dueAt(next++), () => {
        free.push(connection);
        sendDue();
      });
    }
  };
  return setInterval(sendDue, 1);
}
