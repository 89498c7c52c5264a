import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { Stage, Totals } from '../../lab/stage/stage.ts';
import type { Row } from '../run-row.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** What a command prints last, as JSON. */
type Printed = Totals & {
  /** The number of differences between what was acknowledged and the table. */
  readonly table_faults?: number;
};

/**
 * Runs a command of the project that judges by itself: its end is the outcome, what it prints goes on, and its totals
 * are those of the row.
 */
async function command({ claim, tried, counted }: Stage, name: string): Promise<void> {
  const child = spawn('npm', ['run', '--silent', 'lab', '--', name], {
    cwd: ROOT,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let printed = '';
  child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
    printed += chunk;
    process.stderr.write(chunk);
  });
  const [code] = await once(child, 'close');
  claim(`npm run lab -- ${name} ends with 0`, code === 0, code);
  const reported = lastLineOf(printed);
  claim(`npm run lab -- ${name} prints what it has sent`, (reported?.sent ?? 0) > 0, printed.slice(-200));
  if (reported) {
    const { lost = 0, table_faults = 0 } = reported;
    counted({ ...reported, lost: lost + table_faults });
  }
  tried();
}

/** Undefined when the command did not get as far. */
function lastLineOf(printed: string): Printed | undefined {
  const line = printed.trimEnd().split('\n').at(-1) ?? '';
  return line.startsWith('{') ? JSON.parse(line) : undefined;
}

export const rollingRestarts: Row = {
  name: 'rolling-restarts',
  promise:
    'Two instances behind haproxy are restarted under callers that keep their connections: no request is lost.',
  trials: 1,
  run: (stage) => command(stage, 'rolling'),
};

export const overload: Row = {
  name: 'overload',
  promise:
    'At 1, 2, 5 and 10 times the capacity goodput is at least 80 % of the peak, /ready is 200 within a second, and all is normal two seconds after.',
  trials: 1,
  minutes: 25,
  run: (stage) => command(stage, 'overload'),
};
