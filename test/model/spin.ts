import { execFile } from 'node:child_process';
import { access, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Configuration, Property } from './configurations.ts';

const execute = promisify(execFile);

/** In MiB: a search that needs more has failed. */
const MEMORY_LIMIT = 16_384;

/** Maximum length of a path. Spin reserves 48 bytes for each step. */
const DEPTH_LIMIT = 1_000_000;

export async function hasSpin(): Promise<boolean> {
  const programs = ['spin', 'gcc'].map((name) => execute('which', [name]));
  return (await Promise.allSettled(programs)).every(({ status }) => status === 'fulfilled');
}

/** Runs a verifier in its folder with these options. Resolves with what it prints. */
type Run = (...options: readonly string[]) => Promise<string>;

/** Compiles a verifier into a folder of its own, has `use` run it, and removes the folder. */
export async function withVerifier<Used>(
  { model, defines, property, isHashed = false }: Omit<Configuration, 'name'>,
  use: (run: Run, folder: string) => Promise<Used>,
): Promise<Used> {
  const folder = await mkdtemp(join(tmpdir(), 'user-management-model-'));
  try {
    const macros = Object.entries(defines).map(
      ([name, value]) => `-D${name}${value === true ? '' : `=${value}`}`,
    );
    await execute('spin', [...macros, '-a', join(import.meta.dirname, `${model}.pml`)], { cwd: folder });
    await access(join(folder, 'pan.c'));
    const search = property === 'safety' ? ['-DSAFETY', '-DNOFAIR'] : ['-DNFAIR=3'];
    // Small searches take less time than the compilation.
    const storage = isHashed ? ['-O2', '-DHC4'] : ['-O1', '-DCOLLAPSE'];
    const options = ['-w', '-DNOREDUCE', `-DMEMLIM=${MEMORY_LIMIT}`, `-I${import.meta.dirname}`];
    await execute('gcc', [...options, ...storage, ...search, '-o', 'pan', 'pan.c'], { cwd: folder });
    const run: Run = async (...words) => {
      const { stdout } = await execute(join(folder, 'pan'), words, { cwd: folder, maxBuffer: 1 << 26 });
      return stdout;
    };
    return await use(run, folder);
  } finally {
    await rm(folder, { recursive: true });
  }
}

/** Visits all states of a configuration, or stops at the first fault. */
export function verify(configuration: Configuration) {
  return withVerifier(configuration, async (run) => {
    const liveness = configuration.property === 'liveness' ? ['-a', '-f'] : [];
    const output = await run(`-m${DEPTH_LIMIT}`, '-n', ...liveness);
    const figure = (pattern: RegExp) => Number(pattern.exec(output)?.[1] ?? Number.NaN);
    const errors = figure(/errors: (\d+)/);
    const isCycle = /acceptance cycle/.test(output);
    const property = figure(/\((\d+)==0\)\) \(at depth/) as Property;
    const isWhole = !/Search not completed|max search depth too small|out of memory/.test(output);
    return {
      states: figure(/([\d.]+(?:e\+\d+)?) states, stored/),
      depth: figure(/depth reached (\d+)/),
      seconds: figure(/elapsed time ([\d.e+-]+)/),
      megabytes: figure(/([\d.]+)\s+total actual memory usage/),
      /** Number of the property that does not hold; undefined if all hold. */
      violated: errors === 0 ? undefined : isCycle ? 0 : property,
      /** Whether every state was visited. */
      isComplete: errors === 0 && isWhole,
    };
  });
}
