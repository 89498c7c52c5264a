// Runs before the npm scripts, on Node 20 or later with nothing installed: plain JavaScript, no packages, and one file,
// so that a folder with only this file and dist/ can be started, too.
//
// Node 24 is an npm package, linked as node_modules/.bin/node by this file, which relies on no npm to have done so. npm
// before 11.6 removes that link together with the optional packages that do not fit the platform, because all runtimes
// share it. In node_modules of another system the link exists and does not start, so the scripts call the Node that
// runs npm. On Apple Silicon the runtime is Node 26, unless the machine has a Node 24: the newest packaged 24 there is
// 24.0.0, which is a year and a half behind in security fixes, and in which running TypeScript is experimental.
import { spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { delimiter, dirname, join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('.', import.meta.url));
const programs = join(root, 'node_modules', '.bin');
const runtime = join(programs, 'node');
const built = join(root, 'dist', 'host', 'main.mjs');
const lock = join(root, '.data', 'bootstrap.lock');
// biome-ignore lint/style/noProcessEnv: npm reports its own path here
const environment = process.env;
const own = environment.npm_node_execpath ?? process.execPath;

const isToBeBuilt = process.argv.includes('--built');
const hasSources = existsSync(join(root, 'host', 'main.ts'));

try {
  if (!isPrepared()) await alone(prepare);
} catch (error) {
  say(`\n${error.message}\n`);
  process.exitCode = 1;
}

function isPrepared() {
  return hasPackages() && (!isToBeBuilt || isBuilt());
}

async function prepare() {
  if (!hasPackages() && !(isInstalled() && mendRuntime())) {
    await install();
    if (!mendRuntime()) throw new Error(`Node 24 is needed, and this system has ${process.version}.`);
  }
  if (isToBeBuilt && !isBuilt()) build();
}

/** A build needs no packages except the runtime. */
function hasPackages() {
  if (isToBeBuilt && !hasSources) return isFit('node');
  return isInstalled() && hasRuntime();
}

function isInstalled() {
  return missingPackages().length === 0;
}

/**
 * Names the packages of package-lock.json that node_modules lacks. An installation that was cut off has no list at all.
 */
function missingPackages() {
  const wanted = packagesOf(join(root, 'package-lock.json'));
  const present = presentPackages();
  // Optional packages count only if this project names them: the runtime and PostgreSQL.
  const named = Object.keys(wanted['']?.optionalDependencies ?? {}).map((name) => `node_modules/${name}`);
  return Object.keys(wanted).filter((path) => {
    if (path === '' || present[path]?.version === wanted[path].version) return false;
    return !wanted[path].optional || (named.includes(path) && isForThisMachine(wanted[path]));
  });
}

function packagesOf(file) {
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')).packages : {};
}

function presentPackages() {
  try {
    return packagesOf(join(root, 'node_modules', '.package-lock.json'));
  } catch {
    // npm was cut off while it wrote the list.
    return {};
  }
}

function isForThisMachine({ os = [process.platform], cpu = [process.arch] }) {
  return [os].flat().includes(process.platform) && [cpu].flat().includes(process.arch);
}

async function install() {
  say('Installing the packages with "npm ci": this takes a minute at the first time\n');
  const since = Date.now();
  const seconds = () => Math.round((Date.now() - since) / 1000);
  const progress = setInterval(() => {
    if (process.stderr.isTTY) say(`\r  ${seconds()} s `);
    else if (seconds() % 15 === 0) say(`  still installing after ${seconds()} s\n`);
  }, 1000);
  // No package needs its scripts. Older versions of npm would run them all, and some of them are compilers.
  const { code, output } = await run([
    'ci',
    '--include=dev',
    '--include=optional',
    '--ignore-scripts',
    '--loglevel=error',
  ]);
  clearInterval(progress);
  if (process.stderr.isTTY) say('\r');
  if (code === null) throw new Error('The installation was interrupted.');
  if (code !== 0)
    throw new Error(`${output.trim()}\n\n"npm ci" failed with exit code ${code}: see its words above.`);

  const missing = missingPackages();
  if (missing.length > 0) throw new Error(`"npm ci" left out ${missing.join(', ')}.`);
  say(`  installed in ${seconds()} s\n`);
}

function run(options) {
  const [program, ...rest] = npm();
  const child = spawn(program, [...rest, ...options], {
    cwd: root,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  // If this process is killed, npm continues. The next process waits for it.
  writeFileSync(lock, `${process.pid} ${child.pid ?? ''}`);
  // npm would take half a minute to clean up. The next "npm ci" repeats everything anyway.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill('SIGKILL'));
  const output = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => output.push(part));
  return new Promise((resolve, reject) => {
    child.on('error', (error) => reject(new Error(`npm does not start: ${error.message}`)));
    child.on('close', (code) => resolve({ code, output: Buffer.concat(output).toString() }));
  });
}

function npm() {
  const cli = environment.npm_execpath;
  if (!cli?.endsWith('npm-cli.js')) return ['npm'];
  // The Node that runs npm, not the one in node_modules, which is about to be replaced.
  return [own, cli];
}

/** A Node later than 24, as packaged for Apple Silicon, is used only if there is no 24. */
function hasRuntime() {
  const major = majorOf(runtime);
  return major === 24 || (major > 24 && majorOf(own) !== 24);
}

/**
 * Links node_modules/.bin/node to a Node 24. Returns whether there is one. npm before 11.6 removes its own link
 * together with those of the packages for other systems, which have the same name.
 */
function mendRuntime() {
  const fit = [...packagedRuntimes(), own].filter((program) => program !== runtime && isFit(program));
  const program = fit.find((candidate) => majorOf(candidate) === 24) ?? fit[0];
  if (program === undefined) return false;
  const draft = `${runtime}.${process.pid}`;
  mkdirSync(programs, { recursive: true });
  rmSync(draft, { force: true });
  symlinkSync(program.startsWith(root) ? relative(programs, program) : program, draft);
  renameSync(draft, runtime);
  return true;
}

function packagedRuntimes() {
  return Object.entries(presentPackages())
    .filter(([, wanted]) => wanted.bin?.node && isForThisMachine(wanted))
    .map(([path, { bin }]) => join(root, path, bin.node));
}

function isFit(program) {
  return majorOf(program) >= 24;
}

/** NaN for a program that does not exist or does not run here. */
function majorOf(program) {
  const { stdout } = spawnSync(program, ['--version'], withPrograms({ encoding: 'utf8' }));
  return Number.parseInt(stdout?.slice(1), 10);
}

/** Whether the last build began after the last change of its sources. */
function isBuilt() {
  const stamp = join(root, 'dist', 'built');
  if (!hasSources) return existsSync(built);
  if (!existsSync(built) || !existsSync(stamp)) return false;
  const sources = [
    'handlers',
    'host',
    'lib',
    'infra',
    'esbuild.config.mjs',
    'package.json',
    'package-lock.json',
  ];
  const since = statSync(stamp).mtimeMs;
  return sources.every((name) => changedAt(join(root, name)) <= since);
}

/**
 * The time of the latest change in a folder. The time of the folder itself shows removed files. A package below is
 * built separately.
 */
function changedAt(path) {
  const found = statSync(path, { throwIfNoEntry: false });
  if (!found?.isDirectory()) return found?.mtimeMs ?? 0;
  const names = readdirSync(path);
  if (names.includes('package.json')) return 0;
  return Math.max(found.mtimeMs, ...names.map((name) => changedAt(join(path, name))));
}

function build() {
  if (!hasSources) throw new Error('There is neither dist/host/main.mjs nor a source to build it from.');
  say('Building dist/\n');
  const { status } = spawnSync('node', ['esbuild.config.mjs'], withPrograms({ stdio: 'inherit' }));
  if (status !== 0) throw new Error('The build failed: see its words above.');
}

function withPrograms(options) {
  const path = `${programs}${delimiter}${environment.PATH}`;
  return { ...options, cwd: root, env: { ...environment, PATH: path } };
}

/** Prevents two npm scripts that start at once from installing at the same time. */
async function alone(work) {
  mkdirSync(dirname(lock), { recursive: true });
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

function takeLock() {
  try {
    writeFileSync(lock, `${process.pid}`, { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code !== 'EEXIST') throw error;
    dropStaleLock();
    return false;
  }
}

// A lock is stale if none of its processes lives. A lock that is still being written has no process yet.
function dropStaleLock() {
  try {
    const isFresh = Date.now() - statSync(lock).mtimeMs < 3000;
    if (isFresh || readFileSync(lock, 'utf8').trim().split(' ').some(isAlive)) return;
  } catch {
    return;
  }
  rmSync(lock, { force: true });
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
