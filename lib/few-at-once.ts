import { unavailable } from './problem.ts';

/**
 * Runs `run` when fewer than `most` of those that it was given are running; the others wait for their turn, so many
 * milliseconds at most.
 *
 * @throws {Problem} service_unavailable_error when the turn has not come by then, and what `run` throws
 */
type FewAtOnce = <Result>(milliseconds: number, run: () => Promise<Result>) => Promise<Result>;

/** As many turns at once as `most`; `reason` is the cause in the log when there are too many. */
export function fewAtOnce(most: number, reason: string): FewAtOnce {
  const waiting = new Set<() => void>();
  let running = 0;

  function turn(milliseconds: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        waiting.delete(begin);
        reject(unavailable(reason));
      }, milliseconds);
      function begin(): void {
        clearTimeout(timer);
        waiting.delete(begin);
        resolve();
      }
      waiting.add(begin);
    });
  }

  return async (milliseconds, run) => {
    if (running === most) await turn(milliseconds);
    else running += 1;
    try {
      return await run();
    } finally {
      const [next] = waiting;
      if (next) next();
      else running -= 1;
    }
  };
}
