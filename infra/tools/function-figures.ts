// Prints the size and the cold start of every built function: node infra/tools/function-figures.ts
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { functions } from '../functions.ts';
import { sizeLoaded } from './bundle.ts';

const RUNS = 7;

/** In milliseconds. */
type Start = { readonly wall: number; readonly cpu: number };

const folder = join(import.meta.dirname, '../../dist/functions');
const names = (await functions()).map(({ operationId }) => operationId);
const [alone, ...starts] = alternately(['', ...names.map(importOf)]);

print('', 'bundle', 'loaded after', 'of that CPU');
print('node alone', '', ...columnsOf(alone));
for (const [index, name] of names.entries()) {
  print(name, kilobytes(sizeLoaded(join(folder, name, 'function.mjs'))), ...columnsOf(starts[index]));
}

function importOf(name: string): string {
  const { href } = pathToFileURL(join(folder, name, 'index.mjs'));
  return `import { handler } from '${href}'; if (typeof handler !== 'function') process.exit(1);`;
}

/** Starts each program several times, in turns, so that other load on the machine affects all of them alike. */
function alternately(programs: readonly string[]): readonly (readonly Start[])[] {
  const rounds = Array.from({ length: RUNS }, () => programs.map(start));
  return programs.map((_, index) => rounds.map((round) => round[index] as Start));
}

function start(program: string): Start {
  const begun = performance.now();
  const measured = `${program}const { user, system } = process.cpuUsage(); console.log(user + system); process.exit();`;
  const options = ['--input-type=module', '-e', measured];
  const { status, stdout } = spawnSync(process.execPath, options, { stdio: ['ignore', 'pipe', 'inherit'] });
  if (status !== 0) throw new Error('a function does not load: run npm run build');
  return { wall: performance.now() - begun, cpu: Number(stdout) / 1000 };
}

function columnsOf(starts: readonly Start[] = []): readonly string[] {
  return [starts.map(({ wall }) => wall), starts.map(({ cpu }) => cpu)].map(
    (times) => `${Math.round(median(times))} ms`,
  );
}

function median(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[values.length >> 1] as number;
}

function kilobytes(bytes: number): string {
  return `${Math.ceil(bytes / 1000)} KB`;
}

function print(name: string, ...columns: readonly string[]): void {
  process.stdout.write(`${name.padEnd(10)}${columns.map((column) => column.padStart(14)).join('')}\n`);
}
