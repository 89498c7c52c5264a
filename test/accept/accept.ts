import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** Runs the checks as `npm run accept -- ...` does, with exactly this environment. Resolves with the exit code and the output. */
export async function accept(words: readonly string[], variables: Readonly<Record<string, string>> = {}) {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'accept.mjs'), ...words], {
    env: { ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [report, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  return { code: code as number | null, report: report + errors };
}
