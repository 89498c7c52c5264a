import { spawnSync } from 'node:child_process';
import { globSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { builtHost } from '../stage/build.ts';

const RUNTIMES = join(import.meta.dirname, 'runtimes/node_modules');

const built = dirname(dirname(await builtHost()));
const service = globSync('{host,functions/*}/*.mjs', { cwd: built }).filter(
  (file) => !/function\.mjs$/.test(file),
);

test.each(['node-18', 'node-20'].flatMap((name) => service.map((file) => [name, file] as const)))(
  'with %s, %s names the version that it needs, and ends with exit code 1',
  (name, file) => {
    const node = join(RUNTIMES, name, 'bin/node');
    const version = spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout.slice(1).trim();
    const { status, stdout, stderr } = spawnSync(node, [join(built, file)], { encoding: 'utf8' });

    expect({ status, stdout, stderr }).toEqual({
      status: 1,
      stdout: '',
      stderr: `The User Management Service needs Node.js 24 or later, and this is Node.js ${version}.\n`,
    });
  },
);
