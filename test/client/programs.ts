import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { openFiles } from './command.ts';

/** A folder for programs of a caller, which are compiled with strict types. */
export function openPrograms(compilerOptions: object) {
  const files = openFiles();
  const strict = {
    strict: true,
    module: 'nodenext',
    target: 'es2022',
    lib: ['es2023', 'dom', 'dom.iterable'],
    ...compilerOptions,
  };
  files.write('package.json', '{ "name": "caller", "private": true, "type": "module" }');
  files.write('tsconfig.json', JSON.stringify({ compilerOptions: strict }));
  return {
    ...files,
    /** Runs a program in the folder, and returns what it prints. */
    async run(program: string, ...args: readonly string[]): Promise<string> {
      const ended = promisify(execFile)(program, args, {
        cwd: files.folder,
        env: { HOME: files.folder, NO_COLOR: '1', DENO_NO_UPDATE_CHECK: '1' },
        timeout: 60_000,
      });
      const { stdout } = await ended.catch((error) =>
        Promise.reject(new Error(`${error.message}${error.stdout}`)),
      );
      return stdout;
    },
  };
}
