import { execFile } from 'node:child_process';
import { globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const CLIENT = join(import.meta.dirname, '../../infra/client');
const RUNTIMES = join(import.meta.dirname, 'runtimes/node_modules');

/** A runtime: its name, and the arguments that run a program in it. */
export type Runtime = { readonly name: string; readonly words: readonly string[] };

/** The installed runtimes: this Node, Node 20, Bun and Deno. */
export const runtimes: readonly Runtime[] = [
  { name: `Node ${process.versions.node}`, words: [process.execPath] },
  ...installed('Node 20', 'node-20/bin/node', []),
  ...installed('Bun', '@oven/bun-*/bin/bun', ['run']),
  ...installed('Deno', '@deno/*/deno', ['run', '--allow-net', '--no-prompt']),
];

function installed(name: string, pattern: string, words: readonly string[]): readonly Runtime[] {
  return globSync(pattern, { cwd: RUNTIMES }).map((path) => ({
    name,
    words: [join(RUNTIMES, path), ...words],
  }));
}

const STRICT = [
  ...['--strict', '--exactOptionalPropertyTypes', '--noUncheckedIndexedAccess', '--skipLibCheck', 'false'],
  ...['--module', 'nodenext', '--target', 'es2022', '--lib', 'es2023,dom,dom.iterable'],
];

/** An empty folder into which the client is installed from its archive, as a new user does. */
export async function startFolder() {
  const folder = mkdtempSync(join(tmpdir(), 'user-management-client-'));
  const { stdout } = await run('npm', ['pack', '--silent', '--pack-destination', folder], { cwd: CLIENT });
  const archive = stdout.trim().split('\n').at(-1) as string;
  writeFileSync(join(folder, 'package.json'), '{ "name": "caller", "private": true, "type": "module" }');
  await run('npm', ['install', '--no-audit', '--no-fund', join(folder, archive)], { cwd: folder });

  return {
    path: folder,
    /** Compiles programs with the strictest options and the types of the client. */
    async compile(programs: Readonly<Record<string, string>>): Promise<void> {
      const files = Object.entries(programs).map(([name, program]) => {
        writeFileSync(join(folder, `${name}.ts`), program);
        return `${name}.ts`;
      });
      const compiler = join(CLIENT, 'node_modules/.bin/tsc');
      await run(compiler, [...STRICT, ...files], { cwd: folder }).catch((error) => {
        throw new Error(error.stdout);
      });
    },
    /** Runs a compiled program, and returns the lines of its output. */
    async run({ words }: Runtime, name: string): Promise<readonly string[]> {
      const [program = '', ...rest] = words;
      const { stdout: printed } = await run(program, [...rest, `${name}.js`], {
        cwd: folder,
        env: { HOME: folder, NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' },
        timeout: 60_000,
      });
      return printed.split('\n').slice(0, -1);
    },
    remove: () => rmSync(folder, { recursive: true }),
  };
}
