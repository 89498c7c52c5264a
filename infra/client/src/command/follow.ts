import { isatty } from 'node:tty';
import { PAGE } from '../feed.ts';
import { isProblem, WrongValue } from '../problem.ts';
import type { CommandRun } from './arguments.ts';
import { cursorExpired, readCursor, wrongCursor } from './cursor-file.ts';
import { EXIT, type ExitCode, reasonOf } from './failure.ts';
import { openStandardOutput, replaceFile } from './output.ts';

/** Writes the changes after the cursor to standard output, and replaces the cursor after each page of them. */
export async function followChanges(run: CommandRun<'follow'>): Promise<ExitCode> {
  const { users, options, progress, stop } = run;
  const { cursor: path, once, wait } = options;
  let cursor = readCursor(path);
  const output = openStandardOutput();
  // A cursor that cannot be replaced is reported before the first change is written.
  await replaceFile(path, `${cursor}\n`);
  let count = 0;
  progress.start(() => ({ count }), !isatty(1));
  try {
    for await (const page of users.changePages({ from: cursor, follow: !once, wait, signal: stop.soon })) {
      if (page.changes.length > 0) {
        await output.write(page.changes.map((change) => `${JSON.stringify(change)}\n`).join(''));
        await output.flush();
        count += page.changes.length;
      }
      if (page.cursor !== cursor) await replaceFile(path, `${page.cursor}\n`);
      ({ cursor } = page);
      // While others write, there may be a further change each time that the changes are read.
      if (once && page.changes.length < PAGE) break;
    }
  } catch (error) {
    if (isProblem(error, 'cursor_expired_error')) throw cursorExpired(path);
    if (isProblem(error, 'validation_error') || error instanceof WrongValue)
      throw wrongCursor(path, reasonOf(error));
    throw error;
  }
  return EXIT.done;
}
