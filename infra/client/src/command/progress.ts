/** How far a command is. `share` is from 0 to 1, and undefined while the total is not known. */
export type State = { readonly count: number; readonly share?: number | undefined };

/** Messages for the person at the terminal, and how far the command is. */
export type Progress = {
  /** Prints a message on a line of its own. */
  say(text: string): void;
  /** Begins to report `state` regularly: as a bar, or as a line every 10 seconds. */
  start(state: () => State, form: 'bar' | 'lines'): void;
  stop(): void;
};

const BAR_EVERY_MS = 200;
const LINE_EVERY_MS = 10_000;
const BAR_WIDTH = 24;
const CLEAR_LINE = '\r\x1b[K';

/** The progress on standard error. */
export function createProgress(stderr: NodeJS.WriteStream = process.stderr): Progress {
  // A reader of standard error that has gone does not stop the command.
  stderr.on('error', () => {});
  let timer: NodeJS.Timeout | undefined;
  let clear = '';
  return {
    say: (text) => void stderr.write(`${clear}${text}\n`),
    start(state, form) {
      const begin = performance.now();
      const seconds = () => (performance.now() - begin) / 1000;
      if (form === 'bar') clear = CLEAR_LINE;
      const print = () => {
        const now = state();
        if (form === 'bar') stderr.write(`${CLEAR_LINE}${drawBar(now)}${describe(now, seconds())}`);
        else stderr.write(`${describe(now, seconds())}\n`);
      };
      timer = setInterval(print, form === 'bar' ? BAR_EVERY_MS : LINE_EVERY_MS).unref();
    },
    stop() {
      clearInterval(timer);
      stderr.write(clear);
      clear = '';
    },
  };
}

function drawBar({ share }: State): string {
  if (share === undefined) return '';
  const full = Math.round(share * BAR_WIDTH);
  return `[${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}] `;
}

function describe({ count, share }: State, seconds: number): string {
  const rate = `${formatCount(count)}, ${formatCount(Math.round(count / Math.max(seconds, 0.001)))} per second`;
  if (share === undefined) return rate;
  const left = share > 0 ? `, ${formatTime((seconds * (1 - share)) / share)} left` : '';
  return `${Math.floor(share * 100)} %, ${rate}${left}`;
}

function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** Minutes and seconds. */
function formatTime(seconds: number): string {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
