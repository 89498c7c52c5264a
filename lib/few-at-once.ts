import { unavailable } from './problem.ts';

type FewAtOnce = {
  /**
   * Runs what it is given when fewer than `most` are running; the others wait for their turn, so many milliseconds at most.
   *
   * @throws {Problem} service_unavailable_error when the turn has not come by then, and what it runs throws
   */
  run<Result>(milliseconds: number, task: () => Promise<Result>): Promise<Result>;
  /** How many wait for their turn. */
  readonly waitingCount: number;
};

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

  return {
    async run(milliseconds, task) {
      if (running === most) await turn(milliseconds);
      else running += 1;
      try {
        return await task();
      } finally {
        const [next] = waiting;
        if (next) next();
        else running -= 1;
      }
    },
    get waitingCount() {
      return waiting.size;
    },
  };
}
