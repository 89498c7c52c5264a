// The first step of commands.sh, on Node 20 or later with nothing installed: plain JavaScript, no packages, and one file,
// so that a folder with only the two files and dist/ can be started, too.
//
// Node 24 is an npm package, linked as node_modules/.bin/node by this file, which relies on no npm to have done so. npm
// before 11.6 removes that link together with the optional packages that do not fit the platform, because all runtimes
// share it. In node_modules of another system the link exists and does not start, so the scripts call the Node that
// runs npm. On Apple Silicon the runtime is Node 26, unless the machine has a Node 24: the newest packaged 24 there is
// 24.0.0, which is a year and a half behind in security fixes, and in which running TypeScript is experimental.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('.', import.meta.url));
const programs = join(root, 'node_modules', '.bin');
const runtime = join(programs, 'node');
const lock = join(root, '.data', 'bootstrap.lock');
// biome-ignore lint/style/noProcessEnv: npm reports its own path here
const { npm_node_execpath: own = process.execPath, npm_execpath: cli } = process.env;

const isToBeBuilt = process.argv[2] === 'start';
const hasSources = existsSync(join(root, 'host', 'main.ts'));

try {
  if (!isReady()) await alone(makeReady);
} catch (error) {
  say(`\n${error.message}\n`);
  process.exitCode = 1;
}

function isReady() {
  return hasPackages() && (!isToBeBuilt || isBuilt());
}

async function makeReady() {
  if (!hasPackages()) await install();
  if (isToBeBuilt && !isBuilt()) build();
}

/** Whether the packages are there. A folder with a build and no sources needs the runtime only. */
function hasPackages() {
  if (isToBeBuilt && !hasSources && majorOf('node') >= 24) return true;
  return missingPackages().length === 0 && findRuntime() === runtime;
}

/** The packages of package-lock.json that node_modules lacks. An interrupted installation has no list. */
function missingPackages() {
  const wanted = packagesIn('package-lock.json');
  const present = packagesIn('node_modules/.package-lock.json');
  // Optional packages count only if this project names them: the runtime and PostgreSQL.
  const named = Object.keys(wanted['']?.optionalDependencies ?? {}).map((name) => `node_modules/${name}`);
  const isNeeded = (path) =>
    !wanted[path].optional || (named.includes(path) && isForThisMachine(wanted[path]));
  const isMissing = (path) => path !== '' && present[path]?.version !== wanted[path].version;
  return Object.keys(wanted).filter((path) => isMissing(path) && isNeeded(path));
}

/** Finds the program for node_modules/.bin/node: a Node 24, otherwise a later one; undefined if there is neither. */
function findRuntime() {
  const packaged = Object.entries(packagesIn('node_modules/.package-lock.json'))
    .filter(([, found]) => found.bin?.node && isForThisMachine(found))
    .map(([path, { bin }]) => join(root, path, bin.node));
  const found = [runtime, ...packaged, own];
  return found.find((program) => majorOf(program) === 24) ?? found.find((program) => majorOf(program) > 24);
}

/** Installs the packages, unless only the link is missing, and links the runtime. */
async function install() {
  if (missingPackages().length > 0 || findRuntime() === undefined) await installPackages();
  const program = findRuntime();
  if (program === undefined) throw new Error(`Node 24 is needed, and this system has ${process.version}.`);
  if (program === runtime) return;
  mkdirSync(programs, { recursive: true });
  rmSync(runtime, { force: true });
  symlinkSync(program.startsWith(root) ? relative(programs, program) : program, runtime);
}

async function installPackages() {
  say('Installing the packages with "npm ci": this takes a minute at the first time\n');
  const since = Date.now();
  const [program, ...words] = cli?.endsWith('npm-cli.js') ? [own, cli] : ['npm'];
  // No package needs its scripts. Older versions of npm would run them all, and some of them are compilers.
  words.push('ci', '--include=dev', '--include=optional', '--ignore-scripts', '--loglevel=error');
  const child = spawn(program, words, { cwd: root, stdio: ['ignore', 2, 2] });
  // If this process is killed, npm continues. The next process waits for it.
  writeFileSync(lock, `${process.pid} ${child.pid}`);
  // npm would take half a minute to clean up. The next "npm ci" repeats everything anyway.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill('SIGKILL'));
  const [code, signal] = await once(child, 'exit');
  if (signal) throw new Error('The installation was interrupted.');
  if (code !== 0) throw new Error(`"npm ci" failed with exit code ${code}: see its words above.`);
  const missing = missingPackages();
  if (missing.length > 0) throw new Error(`"npm ci" left out ${missing.join(', ')}.`);
  say(`  installed in ${Math.round((Date.now() - since) / 1000)} s\n`);
}

function packagesIn(file) {
  try {
    return JSON.parse(readFileSync(join(root, file), 'utf8')).packages;
  } catch {
    return {};
  }
}

function isForThisMachine({ os = [process.platform], cpu = [process.arch] }) {
  return os.includes(process.platform) && cpu.includes(process.arch);
}

/** NaN for a program that does not exist or does not run here. */
function majorOf(program) {
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' });
  return Number.parseInt(stdout?.slice(1), 10);
}

/** Whether the last build began after the last change of its sources. The time of a folder shows removed files. */
function isBuilt() {
  if (!existsSync(join(root, 'dist', 'host', 'main.mjs'))) return false;
  if (!hasSources) return true;
  const lists = ['esbuild.config.mjs', 'package.json', 'package-lock.json'];
  // No source is in a folder below infra/, and packages there are built separately.
  const isChanged = ['-type', 'd', '-path', 'infra/*', '-prune', '-o', '-newer', 'dist/built', '-print'];
  const sources = ['handlers', 'host', 'lib', 'infra', ...lists, ...isChanged];
  const { status, stdout } = spawnSync('find', sources, { cwd: root, encoding: 'utf8' });
  return status === 0 && stdout === '';
}

function build() {
  if (!hasSources) throw new Error('There is neither dist/host/main.mjs nor a source to build it from.');
  say('Building dist/\n');
  const { status } = spawnSync(runtime, ['esbuild.config.mjs'], { cwd: root, stdio: 'inherit' });
  if (status !== 0) throw new Error('The build failed: see its words above.');
}

/** Prevents two npm scripts that start at once from installing at the same time. */
async function alone(work) {
  mkdirSync(join(root, '.data'), { recursive: true });
  for (let hasSaid = false; !takeLock(); hasSaid = true) {
    if (!hasSaid) say(`Waiting for another npm script to install (if there is none, delete ${lock})\n`);
    await pause(200);
  }
  try {
    await work();
  } finally {
    rmSync(lock, { force: true });
  }
}

/** Creates the lock, or removes one whose processes have all ended, so that a later attempt succeeds. */
function takeLock() {
  try {
    writeFileSync(lock, `${process.pid}`, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
  }
  try {
    // A lock that is still being written names no process yet. Number('') is 0, which is always alive.
    if (!readFileSync(lock, 'utf8').split(' ').some(isAlive)) rmSync(lock, { force: true });
  } catch {
    // The lock was removed in the meantime.
  }
  return false;
}

function isAlive(processId) {
  try {
    return process.kill(Number(processId), 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

function say(text) {
  process.stderr.write(text);
}
