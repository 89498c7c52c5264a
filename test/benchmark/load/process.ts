// A process of its own, so that what makes the load takes no time from what watches it. One job after another.
import type { Job } from './job.ts';
import { runLoad } from './run.ts';

process.on('message', async (job: Job) => {
  const answer = await runLoad(job).then(
    (outcome) => ({ outcome }),
    (error) => ({ error: String(error?.stack ?? error) }),
  );
  process.send?.(answer);
});
process.on('disconnect', () => process.exit());
