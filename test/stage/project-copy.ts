import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, existsSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

const ROOT = join(import.meta.dirname, '../..');

/** The files from which the project is started and built. Its packages are linked. */
const SOURCES =
  'handlers host lib infra esbuild.config.mjs commands.sh bootstrap.mjs .npmrc package.json package-lock.json'.split(
    ' ',
  );

/** A folder with a unique name that every account can access. */
export function openFolder(): string {
  const folder = mkdtempSync(join(realpathSync(tmpdir()), 'user-management-project-'));
  chmodSync(folder, 0o755);
  return folder;
}

/**
 * A copy of the project, so that a test can change it, with data apart from the developer's. In a folder with an older
 * version it replaces that version and keeps the data. `more` names further files to copy.
 */
export function copyOfProject(folder = openFolder(), more: readonly string[] = []): string {
  const copied = [...SOURCES, ...more];
  for (const name of [...copied, 'node_modules'])
    rmSync(join(folder, name), { recursive: true, force: true });
  const filter = (source: string) => !source.slice(ROOT.length).includes('node_modules');
  for (const name of copied) cpSync(join(ROOT, name), join(folder, name), { recursive: true, filter });
  for (const packages of ['node_modules', ...(more.includes('test') ? ['test/node_modules'] : [])])
    symlinkSync(join(ROOT, packages), join(folder, packages));
  return folder;
}

/** Removes a folder of the project, and the files of its database in any place. */
export function removeProject(folder: string): void {
  const data = join(folder, '.data/postgres');
  if (existsSync(data)) rmSync(realpathSync(data), { recursive: true });
  rmSync(folder, { recursive: true, force: true });
}

/** Runs npm in `folder`, as from a shell that no npm script has started. Resolves with its output and its exit code. */
export function npm(folder: string, options: readonly string[], variables: NodeJS.ProcessEnv = {}) {
  return runIn(folder, ['npm', ...options], variables);
}

/** Runs a command line, as `npm` does. */
export async function runIn(
  folder: string,
  [program = '', ...options]: readonly string[],
  variables: NodeJS.ProcessEnv = {},
) {
  const inherited = Object.entries(process.env).filter(([name]) => !/^(npm_|SVC_)/i.test(name));
  const child = spawn(program, options, {
    cwd: folder,
    env: { ...Object.fromEntries(inherited), ...variables },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(child, 'close');
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await ended;
  return { code: code as number | null, stdout, stderr };
}
