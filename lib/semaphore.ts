import { unavailable } from './http/problem.ts';

type Waiting = { readonly rank: number; readonly begin: () => void };

/** Creates a semaphore for `most` tasks. `reason` is the cause in the log if a task did not start in time. */
export function createSemaphore(most: number, reason: string) {
  const line = new Set<Waiting>();
  let running = 0;

  function turn(milliseconds: number, rank: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const timer = setTimeout(() => {
        line.delete(waiting);
        reject(unavailable(reason));
      }, milliseconds);
      const waiting = {
        rank,
        begin() {
          clearTimeout(timer);
          line.delete(waiting);
          resolve();
        },
      };
      line.add(waiting);
    });
  }

  /** The first task among those with the lowest rank. */
  function nextInLine(): Waiting | undefined {
    let next: Waiting | undefined;
    for (const waiting of line) if (!next || waiting.rank < next.rank) next = waiting;
    return next;
  }

  return {
    /**
     * Runs the task if fewer than `most` are running. Further tasks wait for at most `milliseconds`. Those of the
     * lowest rank start first.
     *
     * @throws {Problem} service_unavailable_error if the task did not start in time; also whatever the task throws
     */
    async run<Result>(milliseconds: number, task: () => Promise<Result>, rank = 0): Promise<Result> {
      if (running === most) await turn(milliseconds, rank);
      else running += 1;
      try {
        return await task();
      } finally {
        const next = nextInLine();
        if (next) next.begin();
        else running -= 1;
      }
    },
    /** Number of tasks that wait. */
    get waitingCount(): number {
      return line.size;
    },
  };
}
