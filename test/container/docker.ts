import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

/** The images under test, as test/container/with-images.sh tags them, and their base images. */
export const images = {
  service: 'user-management-service:test',
  issuer: 'user-management-issuer:test',
  users: 'user-management-users:test',
  base: 'gcr.io/distroless/nodejs24-debian13:nonroot',
} as const;

const run = promisify(execFile);

/** Runs the Docker client and returns its output. Throws its error output. */
export async function docker(...words: readonly string[]): Promise<string> {
  const { stdout } = await run('docker', words, { maxBuffer: 64 * 1024 * 1024 });
  return stdout.trim();
}

/** Runs a program in Node.js inside a container and returns its output. */
export function nodeInside(container: string, program: string): Promise<string> {
  return docker('exec', container, '/nodejs/bin/node', '-e', program);
}
