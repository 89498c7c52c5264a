import { setTimeout as sleep } from 'node:timers/promises';
import { isatty } from 'node:tty';
import { openStandardError } from './output.ts';

/** How far a command is: users or changes, and while a file is read, its bytes. */
export type State = { readonly count: number; readonly read?: number; readonly total?: number };

/** Messages for the person at the terminal, and how far the command is. */
export type Progress = ReturnType<typeof createProgress>;

const BAR_EVERY_MS = 200;
const LINE_EVERY_MS = 10_000;
const BAR_WIDTH = 24;
const CLEAR_LINE = '\r\x1b[K';

/** In characters: how much may wait for a reader if messages may be dropped. */
const MAX_WAITING = 65_536;
/** In milliseconds: how long the last of such messages are waited for. */
const LAST_MESSAGE_MS = 1000;

/** The progress on standard error. A reader that has gone does not stop the command. */
export function createProgress() {
  const stderr = openStandardError();
  let timer: NodeJS.Timeout | undefined;
  let clear = '';
  let mayDrop = false;
  let last: Promise<void> | undefined;
  const print = (text: string) => {
    last = stderr.write(text, clear).catch(() => {});
  };
  return {
    /** Prints a message on a line of its own. */
    say(text: string): void {
      if (!mayDrop || stderr.waiting() < MAX_WAITING) print(`${text}\n`);
    },
    /** Begins to report `state` regularly: as a bar on a terminal that has no other output, or as a line every 10 seconds. */
    start(state: () => State, isAlone: boolean): void {
      const begin = performance.now();
      const isBar = isAlone && isatty(2);
      if (isBar) clear = CLEAR_LINE;
      const report = () => {
        const text = describe(state(), (performance.now() - begin) / 1000, isBar);
        if (stderr.waiting() === 0) print(isBar ? text : `${text}\n`);
      };
      timer = setInterval(report, isBar ? BAR_EVERY_MS : LINE_EVERY_MS).unref();
    },
    /** From now on messages are dropped rather than waited for. */
    dropMessages(): void {
      mayDrop = true;
    },
    /** Ends the reports, and resolves when the messages are written. */
    async end(): Promise<void> {
      clearInterval(timer);
      if (clear) print('');
      await Promise.race([last, ...(mayDrop ? [sleep(LAST_MESSAGE_MS)] : [])]);
    },
  };
}

function describe({ count, read = 0, total }: State, seconds: number, isBar: boolean): string {
  const perSecond = Math.round(count / Math.max(seconds, 0.001));
  const rate = `${count.toLocaleString('en-US')}, ${perSecond.toLocaleString('en-US')} per second`;
  if (!total) return rate;
  const share = read / total;
  const bar = isBar ? `[${'#'.repeat(Math.round(share * BAR_WIDTH)).padEnd(BAR_WIDTH, '-')}] ` : '';
  const [one, all] = [read, total].map((bytes) => (bytes / 1e6).toFixed(1));
  const left = Math.round((seconds * (1 - share)) / share);
  const time = `${Math.floor(left / 60)}:${String(left % 60).padStart(2, '0')}`;
  return `${bar}${Math.floor(share * 100)} %, ${one} of ${all} MB, ${rate}${share > 0 ? `, ${time} left` : ''}`;
}
