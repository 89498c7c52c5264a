import { setTimeout as sleep } from 'node:timers/promises';
import { openStandardError } from './output.ts';

/** How far a command is: users or changes, and while a file is read, its bytes. */
export type State = { readonly count: number; readonly read?: number; readonly total?: number };

/** Messages for the person at the terminal, and how far the command is. */
export type Progress = {
  /** Prints a message on a line of its own. */
  say(text: string): void;
  /** Begins to report `state` regularly: as a bar, or as a line every 10 seconds. */
  start(state: () => State, form: 'bar' | 'lines'): void;
  stop(): void;
  /** From now on messages are dropped rather than waited for. */
  dropMessages(): void;
  /** Resolves when the messages are written. */
  end(): Promise<void>;
};

const BAR_EVERY_MS = 200;
const LINE_EVERY_MS = 10_000;
const BAR_WIDTH = 24;
const CLEAR_LINE = '\r\x1b[K';

/** In characters: how much may wait for a reader if messages may be dropped. */
const MAX_WAITING = 65_536;
/** In milliseconds: how long the last of such messages are waited for. */
const LAST_MESSAGE_MS = 1000;

/** The progress on standard error. A reader that has gone does not stop the command. */
export function createProgress(): Progress {
  const stderr = openStandardError();
  let timer: NodeJS.Timeout | undefined;
  let clear = '';
  let mayDrop = false;
  let last: Promise<void> | undefined;
  const print = (text: string) => {
    last = stderr.write(text, clear).catch(() => {});
  };
  return {
    say(text) {
      if (!mayDrop || stderr.waiting() < MAX_WAITING) print(`${text}\n`);
    },
    start(state, form) {
      const begin = performance.now();
      const seconds = () => (performance.now() - begin) / 1000;
      if (form === 'bar') clear = CLEAR_LINE;
      const report = () => {
        const now = state();
        if (stderr.waiting() > 0) return;
        print(form === 'bar' ? drawBar(now) + describe(now, seconds()) : `${describe(now, seconds())}\n`);
      };
      timer = setInterval(report, form === 'bar' ? BAR_EVERY_MS : LINE_EVERY_MS).unref();
    },
    stop() {
      clearInterval(timer);
      if (clear) print('');
      clear = '';
    },
    dropMessages() {
      mayDrop = true;
    },
    end: async () => void (await Promise.race([last, ...(mayDrop ? [sleep(LAST_MESSAGE_MS)] : [])])),
  };
}

function drawBar({ read = 0, total }: State): string {
  if (total === undefined) return '';
  const full = Math.round((read / total) * BAR_WIDTH);
  return `[${'#'.repeat(full)}${'-'.repeat(BAR_WIDTH - full)}] `;
}

function describe({ count, read = 0, total }: State, seconds: number): string {
  const rate = `${formatCount(count)}, ${formatCount(Math.round(count / Math.max(seconds, 0.001)))} per second`;
  if (total === undefined) return rate;
  const share = read / total;
  const left = share > 0 ? `, ${formatTime((seconds * (1 - share)) / share)} left` : '';
  const [one, all] = [read, total].map((bytes) => (bytes / 1e6).toFixed(1));
  return `${Math.floor(share * 100)} %, ${one} of ${all} MB, ${rate}${left}`;
}

function formatCount(count: number): string {
  return count.toLocaleString('en-US');
}

/** Minutes and seconds. */
function formatTime(seconds: number): string {
  const whole = Math.round(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
