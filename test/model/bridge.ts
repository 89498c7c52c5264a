import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { withVerifier } from './spin.ts';
import { BOUNDS, type Window } from './windows.ts';

/** Windows of one run of the verifier. */
const BATCH = 1000;

const DEFINES = {
  WINDOW: true,
  WRITERS: BOUNDS.CHANGES,
  CHANGES: BOUNDS.CHANGES,
  USERS: BOUNDS.CHANGES,
  READERS: BOUNDS.READS,
  CLEANERS: 1,
  PAGE: 8,
  STEP: 8,
  ROLLBACKS: 0,
} as const;

/**
 * Searches an execution of the model of the feed for each window. Resolves with the windows that have none. A window
 * that needs another order of sequence numbers than that of its positions is searched a second time, in all orders.
 */
export async function refusedWindows(windows: readonly Window[]): Promise<Window[]> {
  const refused = await searchWith({}, windows);
  return refused.length === 0 ? [] : searchWith({ SEARCHES_ALL: true }, refused);
}

function searchWith(more: Record<string, true>, windows: readonly Window[]): Promise<Window[]> {
  const configuration = { model: 'feed', property: 'safety', defines: { ...DEFINES, ...more } } as const;
  return withVerifier(configuration, async (run, folder) => {
    const refused: Window[] = [];
    for (let start = 0; start < windows.length; start += BATCH) {
      const batch = windows.slice(start, start + BATCH);
      await writeFile(join(folder, 'windows'), `${batch.length}\n${batch.map(lineOf).join('\n')}\n`);
      const output = await run('-m100000', '-n', '-E', '-w20');
      const results = [...output.matchAll(/^window \d+ (accepted|refused)$/gm)].map(([, result]) => result);
      if (results.length !== batch.length || !/errors: 0/.test(output))
        throw new Error(`the verifier failed: ${output}`);
      refused.push(...batch.filter((_, index) => results[index] === 'refused'));
    }
    return refused;
  });
}

/** A window in the form that windows.h reads: lists, each with its length. */
function lineOf({ events, users, bases, changes, reads }: Window): string {
  const lists = [
    events.map(([what, who]) => what * 16 + who),
    users,
    bases,
    changes.map(({ writer }) => writer),
    changes.map(({ version }) => version),
    reads,
  ];
  return lists.flatMap((list) => [list.length, ...list]).join(' ');
}
