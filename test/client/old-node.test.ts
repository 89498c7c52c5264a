import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { builtHost } from '../stage/build.ts';
import { MAIN } from './command.ts';

const RUNTIMES = join(import.meta.dirname, 'runtimes/node_modules');
const PREPARE = join(import.meta.dirname, '../../infra/client/prepare.mjs');

const built = dirname(dirname(await builtHost()));
const service = globSync('{host,functions/*}/{index,main,maintain,migrate}.mjs', { cwd: built });

const STARTED: readonly (readonly [program: string, runtime: string, file: string, needed: number])[] = [
  ...['node-18', 'node-20'].flatMap((runtime) =>
    service.map((file) => ['The User Management Service', runtime, join(built, file), 24] as const),
  ),
  ...[MAIN, PREPARE].map((file) => ['The command users', 'node-18', file, 20] as const),
];

test.each(STARTED)(
  '%s, with %s at %s, names Node.js %i, which it needs, and ends with exit code 1',
  (program, runtime, file, needed) => {
    const node = join(RUNTIMES, runtime, 'bin/node');
    const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.slice(1).trim();
    const { status, stdout, stderr } = spawnSync(node, [file], { encoding: 'utf8' });

    expect({ status, stdout, stderr }).toEqual({
      status: 1,
      stdout: '',
      stderr: `${program} needs Node.js ${needed} or later, and this is Node.js ${version}.\n`,
    });
  },
);
