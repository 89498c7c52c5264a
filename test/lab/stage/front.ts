import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { freePort } from '../../../host/development/free-port.ts';
import { isListening } from '../../stage/listening.ts';
import { until } from '../../stage/until.ts';

const OPTIONS = {
  haproxy: ['-db', '-f'],
  nginx: ['-g', 'daemon off;', '-e', 'stderr', '-c'],
} as const;

/**
 * Starts haproxy or nginx on a free port of loopback. `configuration` gets this port and a folder for the program's files.
 * Resolves once the program listens.
 */
export async function startFront(
  program: keyof typeof OPTIONS,
  configuration: (port: number, folder: string) => string,
) {
  const folder = await mkdtemp(join(tmpdir(), `user-management-${program}-`));
  // Its workers may run as another user.
  await chmod(folder, 0o777);
  const port = await freePort();
  const file = join(folder, 'configuration');
  await writeFile(file, configuration(port, folder));
  const child = spawn(program, [...OPTIONS[program], file], {
    // Debian has both programs in /usr/sbin, which the PATH of most accounts lacks.
    env: { PATH: `${process.env.PATH}:/usr/sbin` },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const kill = () => void child.kill('SIGKILL');
  process.on('exit', kill);
  const printed = text(child.stderr).catch(String);
  await once(child, 'spawn').catch((error) => {
    throw new Error(
      `${error}; Debian has it as a package: apt-get install --no-install-recommends ${program}`,
    );
  });
  const ended = once(child, 'exit');
  await until(`${program} listens`, async () => {
    if (child.exitCode !== null) throw new Error(`${program} does not start: ${await printed}`);
    return isListening(port);
  });
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    async stop(): Promise<void> {
      child.kill('SIGTERM');
      await ended;
      process.off('exit', kill);
      await rm(folder, { recursive: true, force: true });
    },
  };
}
