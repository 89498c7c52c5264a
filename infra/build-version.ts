import { execFileSync } from 'node:child_process';
import packageJson from '../package.json' with { type: 'json' };

/** Number of digits of the commit's hash. It is fixed, so that every clone has the same version. */
const HASH_LENGTH = 7;

/**
 * The version of a build in the current folder. In a clone it has the commit as build metadata (`1.2.0-dev+75c07d4`, SemVer
 * 2.0.0 section 10). Elsewhere, for example in an unpacked archive, it does not.
 */
export function buildVersion(): string {
  const commit = commitHere();
  return commit ? `${packageJson.version}+${commit.slice(0, HASH_LENGTH)}` : packageJson.version;
}

/**
 * Returns a version that is passed in because git is not available, if it is a version of this package.
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

/** The checked-out commit, if the current folder is the root of a clone. An enclosing repository is another project. */
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

/** The tag of an image: the version of a release, and otherwise the version and the commit (`1.2.0-dev-75c07d4`). */
function imageTag(): string {
  const { version } = packageJson;
  return version.includes('-') ? buildVersion().replace('+', '-') : version;
}

if (import.meta.main) process.stdout.write(`${process.argv[2] === '--tag' ? imageTag() : buildVersion()}\n`);
