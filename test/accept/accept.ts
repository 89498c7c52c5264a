import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

/** The exit code and the output of a run of the acceptance checks. */
export type Acceptance = { readonly code: number | null; readonly report: string; readonly failed: string[] };

/** Runs the checks as `npm run accept -- ...` does, with exactly this environment. */
export async function accept(
  words: readonly string[],
  variables: Readonly<Record<string, string>> = {},
): Promise<Acceptance> {
  const child = spawn(process.execPath, [join(import.meta.dirname, 'accept.mjs'), ...words], {
    env: { ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const [report, errors, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ]);
  const failed = [...report.matchAll(/^ {2}✗ (.*)$/gm)].map(([, title = '']) => title);
  return { code, report: report + errors, failed };
}
