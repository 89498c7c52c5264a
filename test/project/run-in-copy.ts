import { execFile } from 'node:child_process';
import { delimiter, join } from 'node:path';
import { inject } from 'vitest';

/**
 * Runs a program of the packages in a copy of the project, with the PostgreSQL of the tests. Resolves with its exit code and
 * its output.
 */
export function runInCopy(
  folder: string,
  program: string,
  ...options: readonly string[]
): Promise<{ code: number; output: string }> {
  const { host, port, user, password, database } = inject('postgres');
  const env = {
    ...process.env,
    PATH: `${join(folder, 'node_modules/.bin')}${delimiter}${process.env.PATH}`,
    TEST_POSTGRES_URL: `postgres://${user}:${password}@${host}:${port}/${database}`,
  };
  return new Promise((resolve) =>
    execFile(program, options, { cwd: folder, env, maxBuffer: 2 ** 26 }, (error, stdout, stderr) =>
      resolve({ code: Number(error?.code ?? 0), output: stdout + stderr }),
    ),
  );
}
