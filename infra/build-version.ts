import { execFileSync } from 'node:child_process';
import packageJson from '../package.json' with { type: 'json' };

/** Enough of a commit's hash to name it, and always as much, so that every clone gives the same version. */
const HASH_LENGTH = 7;

/**
 * The version of a build in the current folder: with the commit as build metadata (`1.1.0+75c07d4`, SemVer 2.0.0 section
 * 10) in a clone, and without it elsewhere, in an unpacked archive for example.
 */
export function buildVersion(): string {
  const commit = commitHere();
  return commit ? `${packageJson.version}+${commit.slice(0, HASH_LENGTH)}` : packageJson.version;
}

/**
 * A version that is given from outside, where there is no git, if it is one of this package.
 *
 * @throws an error for another version
 */
export function checkedVersion(given: string): string {
  const { version } = packageJson;
  if (given === version || given.startsWith(`${version}+`)) return given;
  throw new Error(
    `The version "${given}" is not ${version}, which package.json has, with or without build metadata.`,
  );
}

/** The checked-out commit, if the current folder is the root of a clone; a repository around it is not of this project. */
function commitHere(): string | undefined {
  try {
    const [prefix, commit] = execFileSync('git', ['rev-parse', '--show-prefix', 'HEAD'], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).split('\n');
    return prefix === '' ? commit : undefined;
  } catch {
    return undefined;
  }
}

if (import.meta.main) process.stdout.write(`${buildVersion()}\n`);
