// The first step of commands.sh, in its folder, on Node 20 or later with nothing installed: plain JavaScript, no packages,
// and one file, so that a folder with only the two files and dist/ can be started, too.
//
// Node 24 is an npm package, which this file links as node_modules/.bin/node. npm before 11.6 removes that link together
// with the optional packages that do not fit the platform, because all runtimes share it. In node_modules of another
// system it exists and does not start, so the scripts call the Node that runs npm. On Apple Silicon the runtime is Node 26,
// unless the machine has a Node 24: the newest packaged 24 there is 24.0.0, which is a year and a half behind in security
// fixes, and in which running TypeScript is experimental.
//
// Tests and checks need three times as many packages as the service. These tools are a package of their own, test/, which
// only the commands in `withTools` install. Their programs are linked in node_modules/.bin, where npx finds them.
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, isAbsolute, join, relative } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const runtime = 'node_modules/.bin/node';
const lock = '.data/bootstrap.lock';

const withTools = ['test', 'check', 'suite', 'lab'];
const [, , name] = process.argv;
const isToBeBuilt = name === 'start';
const hasSources = existsSync('host/main.ts');
const say = (line) => process.stderr.write(`${line}\n`);

try {
  await make(install, hasPackages);
  if (isToBeBuilt) await make(build, isBuilt);
} catch (error) {
  say(`\n${error.message}`);
  process.exitCode = 1;
}

/** Whether the packages are there. A folder with a build and no sources needs the runtime only. */
function hasPackages() {
  if (isToBeBuilt && !hasSources && majorOf('node') >= 24) return true;
  if (missingPackages('.').length > 0 || findRuntime() !== runtime) return false;
  return !withTools.includes(name) || (missingPackages('test').length === 0 && unlinkedTools().length === 0);
}

/** The packages of package-lock.json that node_modules lacks. An interrupted installation has no list. */
function missingPackages(folder) {
  const { '': project, ...wanted } = packagesIn(join(folder, 'package-lock.json'));
  const present = packagesIn(join(folder, 'node_modules/.package-lock.json'));
  return Object.keys(wanted).filter((path) => {
    const { version, optional, os = [process.platform], cpu = [process.arch] } = wanted[path];
    if (present[path]?.version === version) return false;
    // Optional packages count only if this project names them: the runtime and PostgreSQL.
    const isNamed = path.replace('node_modules/', '') in (project.optionalDependencies ?? {});
    return !optional || (isNamed && os.includes(process.platform) && cpu.includes(process.arch));
  });
}

/** The programs of the tools without a link: an installation of the service's packages removes the links. */
function unlinkedTools() {
  const { '': tools, ...packages } = packagesIn('test/package-lock.json');
  const programs = Object.keys(tools.dependencies).flatMap((tool) =>
    Object.keys(packages[`node_modules/${tool}`].bin ?? {}),
  );
  return programs.filter((program) => {
    try {
      return readlinkSync(linkOf(program)) !== targetOf(program);
    } catch {
      return true;
    }
  });
}

function linkTools() {
  for (const program of unlinkedTools()) {
    rmSync(linkOf(program), { force: true });
    symlinkSync(targetOf(program), linkOf(program));
  }
}

function linkOf(program) {
  return join('node_modules/.bin', program);
}

function targetOf(program) {
  return join('../../test/node_modules/.bin', program);
}

/** Finds the program for node_modules/.bin/node: a Node 24, otherwise a later one; undefined if there is neither. */
function findRuntime() {
  const installed = Object.entries(packagesIn('node_modules/.package-lock.json'));
  const packaged = installed.flatMap(([path, { bin }]) => (bin?.node ? [join(path, bin.node)] : []));
  const found = [runtime, ...packaged, process.execPath];
  return found.find((program) => majorOf(program) === 24) ?? found.find((program) => majorOf(program) > 24);
}

/** Installs the packages, unless only links are missing, and links the runtime and the tools. */
async function install() {
  if (missingPackages('.').length > 0 || findRuntime() === undefined) await installPackages('.', 'packages');
  linkRuntime();
  if (!withTools.includes(name)) return;
  if (missingPackages('test').length > 0) await installPackages('test', 'tools of tests and checks');
  linkTools();
}

function linkRuntime() {
  const program = findRuntime();
  if (program === undefined) throw new Error(`Node 24 is needed, and this system has ${process.version}.`);
  if (program === runtime) return;
  mkdirSync(dirname(runtime), { recursive: true });
  rmSync(runtime, { force: true });
  symlinkSync(isAbsolute(program) ? program : relative(dirname(runtime), program), runtime);
}

async function installPackages(folder, what) {
  say(`Installing the ${what} with "npm ci": this takes a minute at the first time`);
  const begun = performance.now();
  // biome-ignore lint/style/noProcessEnv: npm reports its own path here
  const cli = process.env.npm_execpath;
  const [program, ...words] = cli?.endsWith('npm-cli.js') ? [process.execPath, cli] : ['npm'];
  // No package needs its scripts. Older versions of npm would run them all, and some of them are compilers.
  words.push('ci', '--include=dev', '--include=optional', '--ignore-scripts', '--loglevel=error');
  const child = spawn(program, words, { cwd: folder, stdio: ['ignore', 2, 2] });
  // If this process is killed, npm continues. The next process waits for it.
  writeFileSync(lock, `${process.pid} ${child.pid}`);
  // npm would take half a minute to clean up. The next "npm ci" repeats everything anyway.
  const kill = () => child.kill('SIGKILL');
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, kill);
  const [code, signal] = await once(child, 'exit').catch(({ code }) => [code]);
  for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, kill);
  if (signal) throw new Error('The installation was interrupted.');
  if (code === 'ENOENT') throw new Error('npm is missing. It comes with Node.js, and installs the packages.');
  if (code !== 0) throw new Error(`"npm ci" failed with exit code ${code}: see its words above.`);
  const missing = missingPackages(folder);
  if (missing.length > 0) throw new Error(`"npm ci" left out ${missing.join(', ')}.`);
  say(`  installed in ${Math.round((performance.now() - begun) / 1000)} s`);
}

function packagesIn(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8')).packages;
  } catch {
    return {};
  }
}

/** NaN for a program that does not exist or does not run here. */
function majorOf(program) {
  return Number.parseInt(spawnSync(program, ['--version'], { encoding: 'utf8' }).stdout?.slice(1), 10);
}

/** Whether the last build began after the last change of its sources. The time of a folder shows removed files. */
function isBuilt() {
  if (!existsSync('dist/host/main.mjs')) return false;
  if (!hasSources) return true;
  const places = 'handlers host lib infra esbuild.config.mjs package.json package-lock.json';
  // No source is in a folder below infra/, and packages there are built separately.
  const isChanged = "-type d -path 'infra/*' -prune -o -newer dist/built -print";
  const { status, stdout } = spawnSync(`find ${places} ${isChanged}`, { shell: true, encoding: 'utf8' });
  return status === 0 && stdout === '';
}

function build() {
  if (!hasSources) throw new Error('There is neither dist/host/main.mjs nor a source to build it from.');
  say('Building dist/');
  const { status } = spawnSync(runtime, ['esbuild.config.mjs'], { stdio: 'inherit' });
  if (status !== 0) throw new Error('The build failed: see its words above.');
}

/** Does `work` unless it is done. A lock prevents two npm scripts that start at once from doing it at the same time. */
async function make(work, isDone) {
  if (isDone()) return;
  mkdirSync('.data', { recursive: true });
  for (let hasSaid = false; !takeLock(); hasSaid = true) {
    if (!hasSaid) say(`Waiting for another npm script to install (if there is none, delete ${lock})`);
    await pause(200);
  }
  try {
    if (!isDone()) await work();
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
