import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Row } from '../run-row.ts';
import type { Stage } from '../stage.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Runs a command of the project that has figures of its own; what it prints goes on, and its end is the outcome. */
async function command({ claim, tried }: Stage, script: string): Promise<void> {
  const child = spawn('npm', ['run', '--silent', script], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.pipe(process.stderr);
  const [code] = await once(child, 'exit');
  claim(`npm run ${script} ends with 0`, code === 0, code);
  tried();
}

export const rollingRestarts: Row = {
  name: 'rolling-restarts',
  promise:
    'Two instances behind haproxy are restarted under callers that keep their connections: no request is lost.',
  trials: 1,
  run: (stage) => command(stage, 'test:rolling'),
};

export const overload: Row = {
  name: 'overload',
  promise: 'At 1, 2, 5 and 10 times the capacity goodput is at least 80 % of the peak.',
  trials: 1,
  minutes: 25,
  run: (stage) => command(stage, 'test:overload'),
};
