// Runs before `npm run users`, on Node.js 20 or later with nothing installed: installs and builds this package if it is
// missing or older than its sources. Everything is printed on standard error, because standard output is for data.
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const folder = fileURLToPath(new URL('.', import.meta.url));
const stamp = join(folder, 'dist', 'built');
const sources = [
  ...['src', 'checks.mjs', 'package.json', 'package-lock.json', 'tsconfig.json', '../openapi.json'],
];

if (Number.parseInt(process.versions.node, 10) < 20) {
  process.stderr.write(
    `The command users needs Node.js 20 or later, and this is Node.js ${process.versions.node}.\n`,
  );
  process.exit(1);
}

if (!isBuilt()) {
  process.stderr.write('Installing and building infra/client: this takes a minute at the first time\n');
  const begin = Date.now();
  run('ci');
  run('run', 'build');
  writeFileSync(stamp, '');
  process.stderr.write(`  built in ${Math.round((Date.now() - begin) / 1000)} s\n`);
}

function isBuilt() {
  return (
    existsSync(stamp) && sources.every((name) => changedAt(join(folder, name)) <= statSync(stamp).mtimeMs)
  );
}

/** The time of the latest change in a folder. */
function changedAt(path) {
  const { mtimeMs } = statSync(path);
  if (!statSync(path).isDirectory()) return mtimeMs;
  return Math.max(mtimeMs, ...readdirSync(path).map((name) => changedAt(join(path, name))));
}

function run(...words) {
  const { status, stdout, stderr, error } = spawnSync('npm', words, { cwd: folder, encoding: 'utf8' });
  if (status === 0) return;
  process.stderr.write(`${stdout ?? ''}${stderr ?? ''}${error?.message ?? ''}\n`);
  process.stderr.write(`"npm ${words.join(' ')}" in infra/client failed: see its words above.\n`);
  process.exit(1);
}
