import { isatty } from 'node:tty';
import type { CommandRun } from './arguments.ts';
import { EXIT, type ExitCode } from './failure.ts';
import { openOutput, openStandardOutput } from './output.ts';

/** In characters: how much is written at a time. */
const CHUNK = 262_144;
const PAGE = 1000;

/**
 * Writes every user as a line of JSON. The cursor is that of the changes from before the list, so that the export and the
 * changes after the cursor have every user.
 */
export async function exportUsers(run: CommandRun<'export'>): Promise<ExitCode> {
  const { users, options, progress, stop } = run;
  const { out, cursor } = options;
  const signal = stop.soon;
  let count = 0;
  progress.start(() => ({ count }), out !== undefined || !isatty(1));
  const state = cursor === undefined ? undefined : await openOutput(cursor, 'replace');
  const head = state && (await users.head({ signal }));
  const output = out === undefined ? openStandardOutput() : await openOutput(out, 'replace');
  let text = '';
  for await (const user of users.list({ limit: PAGE }, { signal })) {
    text += `${JSON.stringify(user)}\n`;
    count += 1;
    if (text.length < CHUNK) continue;
    await output.write(text);
    text = '';
  }
  await output.write(text);
  await output.flush();
  await state?.write(`${head}\n`);
  await state?.flush();
  // Both are complete now. The export is put into its place first: after a kill between the two, changes come again.
  await output.close();
  await state?.close();
  progress.say(`exported ${count}`);
  return EXIT.done;
}
