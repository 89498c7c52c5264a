import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Job, Outcome } from './job.ts';

/** The process that makes the load. */
export type Load = {
  readonly processId: number;
  run(job: Job): Promise<Outcome>;
  stop(): void;
};

/** Starts it; it ends with this process at the latest. */
export function startLoad(): Load {
  const child = fork(join(import.meta.dirname, 'process.ts'));
  return {
    processId: child.pid as number,
    async run(job) {
      child.send(job);
      const [{ outcome, error }] = await once(child, 'message');
      if (error) throw new Error(error);
      return outcome;
    },
    stop: () => void child.disconnect(),
  };
}
