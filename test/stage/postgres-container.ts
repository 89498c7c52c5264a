import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const imageLimit = 120_000;

/** Starts PostgreSQL in a container. Undefined without an engine, or without the image after printing the reason. */
export async function startContainer(settings: Readonly<Record<string, string | number>>) {
  if (!hasEngine()) return undefined;
  const image = process.env.TEST_POSTGRES_IMAGE || 'postgres:18';
  try {
    return await Promise.race([run(image, settings), refuseAfter(imageLimit)]);
  } catch (error) {
    const reason = String(error).replace(/\s+/g, ' ').trim();
    process.stdout.write(
      `The container engine does not run ${image}, so the embedded one is taken: ${reason}\n`,
    );
    return undefined;
  }
}

async function run(image: string, settings: Readonly<Record<string, string | number>>) {
  const { PostgreSqlContainer } = await import('@testcontainers/postgresql');
  const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
  const container = await new PostgreSqlContainer(image)
    .withDatabase('postgres')
    .withUsername('postgres')
    .withPassword('postgres')
    .withCommand(['postgres', ...options])
    .start();
  return {
    title: `a container of ${image}`,
    server: {
      host: container.getHost(),
      port: container.getPort(),
      user: container.getUsername(),
      password: container.getPassword(),
      database: container.getDatabase(),
    },
    async strike() {
      await container.stop();
    },
  };
}

async function refuseAfter(milliseconds: number): Promise<never> {
  await pause(milliseconds, undefined, { ref: false });
  throw new Error(`not there after ${milliseconds / 1000} seconds`);
}

/** Whether there is a container engine: a socket in one of its usual places, or the address of one elsewhere. */
export function hasEngine(): boolean {
  const { DOCKER_HOST, XDG_RUNTIME_DIR } = process.env;
  if (DOCKER_HOST) return !DOCKER_HOST.startsWith('unix:') || existsSync(DOCKER_HOST.replace('unix://', ''));
  const folders = ['/var/run', join(homedir(), '.docker/run'), ...(XDG_RUNTIME_DIR ? [XDG_RUNTIME_DIR] : [])];
  return folders.some((folder) => existsSync(join(folder, 'docker.sock')));
}
