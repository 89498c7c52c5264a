import { fork } from 'node:child_process';
import { once } from 'node:events';

/** A process that makes a load, so that this takes no time from whatever watches it. */
export type Worker<Job, Outcome> = {
  readonly processId: number;
  run(job: Job): Promise<Outcome>;
  stop(): void;
};

/** Starts a module that calls `serveJobs` as a process of its own. It ends with this process at the latest. */
export function startWorker<Job extends object, Outcome>(module: string): Worker<Job, Outcome> {
  const child = fork(module);
  const ended = once(child, 'exit').then(([code]) => ({
    error: `the process of the load has ended with ${code}`,
  }));
  return {
    processId: child.pid as number,
    async run(job) {
      child.send(job);
      const reported = once(child, 'message').then(([report]) => report);
      const { outcome, error } = await Promise.race([reported, ended]);
      if (error) throw new Error(error);
      return outcome;
    },
    stop: () => void child.disconnect(),
  };
}

/** Carries out the jobs of the parent process, one after another. */
export function serveJobs<Job, Outcome>(run: (job: Job) => Promise<Outcome>): void {
  process.on('message', async (job: Job) => {
    const report = await run(job).then(
      (outcome) => ({ outcome }),
      (error) => ({ error: String(error?.stack ?? error) }),
    );
    process.send?.(report);
  });
  process.on('disconnect', () => process.exit());
}
