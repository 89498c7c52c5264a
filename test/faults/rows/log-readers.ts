import { truncateSync } from 'node:fs';
import type { ServiceUnderFault, Stage } from '../../lab/stage/stage.ts';
import { createPipe } from '../../stage/pipe.ts';
import { until } from '../../stage/until.ts';
import type { Row } from '../run-row.ts';

const LINES = 1500;

/** Requests that are logged by one long line each, and answered all the same. */
async function logMuch({ claim, tried }: Stage, service: ServiceUnderFault): Promise<void> {
  const callers = service.caller(20);
  const statuses = await Promise.all(
    Array.from({ length: LINES }, async () => (await callers.read(`${'/x'.repeat(2500)}`)).status),
  );
  const odd = statuses.filter((status) => status !== 404);
  claim('every request is answered', odd.length === 0, odd[0]);
  const { status } = await callers.create({ email: `${crypto.randomUUID()}@example.com` });
  claim('the service is unaffected', status === 201, status);
  callers.close();
  tried();
}

const hasCount = (text: string) => text.includes('log_lines_dropped');

export const logReaders: Row = {
  name: 'log-readers',
  promise:
    'The reader of the log stalls, dies, or its disk is full: requests are answered, lines dropped and counted.',
  trials: 3,
  brief: 1,
  async run(stage) {
    const { startService, trials, claim, defer } = stage;
    for (let trial = 0; trial < trials; trial += 1) {
      const pipe = createPipe();
      defer(() => pipe.remove());
      const piped = await startService({}, { output: pipe, isOnItsOwn: true });
      await logMuch(stage, piped);
      await until('a reader that stalled gets the count', () => hasCount(pipe.read()));
      pipe.die();
      await logMuch(stage, piped);
      pipe.revive();
      await until('the next reader gets the count', () => hasCount(pipe.read()));
      claim('the process lives', piped.isAlive());

      const runBy = ['sh', '-c', 'ulimit -f 3072; exec "$@"', 'sh'];
      const full = await startService({}, { runBy, isOnItsOwn: true });
      await logMuch(stage, full);
      truncateSync(full.outputFile);
      await until('the file gets the count when there is room again', () => hasCount(full.printed()));
      claim('the process lives', full.isAlive());
    }
  },
};
