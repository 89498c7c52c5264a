import { unavailable } from './problem.ts';

type FewAtOnce = {
  /**
   * Runs what it is given when fewer than `most` are running; the others wait for their turn, so many milliseconds at most,
   * those of the lowest rank first.
   *
   * @throws {Problem} service_unavailable_error when the turn has not come by then, and what it runs throws
   */
  run<Result>(milliseconds: number, task: () => Promise<Result>, rank?: number): Promise<Result>;
  /** How many wait for their turn. */
  readonly waitingCount: number;
};

type Waiting = { readonly rank: number; readonly begin: () => void };

/** As many turns at once as `most`; `reason` is the cause in the log when there are too many. */
export function fewAtOnce(most: number, reason: string): FewAtOnce {
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

  /** Of those of the lowest rank the one who came first. */
  function nextInLine(): Waiting | undefined {
    let next: Waiting | undefined;
    for (const waiting of line) if (!next || waiting.rank < next.rank) next = waiting;
    return next;
  }

  return {
    async run(milliseconds, task, rank = 0) {
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
    get waitingCount() {
      return line.size;
    },
  };
}
