import { request } from 'node:http';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

const engineLimit = 2_000;
const imageLimit = 120_000;

/** Starts PostgreSQL in a container. Undefined without an engine, or without the image after printing the reason. */
export async function startContainer(settings: Readonly<Record<string, string | number>>) {
  if (!(await hasEngine())) return undefined;
  const image = process.env.TEST_POSTGRES_IMAGE || 'postgres:18';
  const patience = setTimeout(
    () => process.stdout.write(`Waiting for the container engine to bring ${image}\n`),
    5_000,
  );
  try {
    return await Promise.race([run(image, settings), refuseAfter(imageLimit)]);
  } catch (error) {
    const reason = String(error).replace(/\s+/g, ' ').trim();
    process.stdout.write(
      `The container engine does not run ${image}, so the embedded one is taken: ${reason}\n`,
    );
    return undefined;
  } finally {
    clearTimeout(patience);
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

/** Whether a container engine responds. */
export async function hasEngine(): Promise<boolean> {
  const responses = await Promise.all(engineAddresses().map(answersPing));
  return responses.includes(true);
}

function engineAddresses() {
  const given = process.env.DOCKER_HOST;
  if (given?.startsWith('tcp://')) {
    const { hostname, port } = new URL(given);
    return [{ host: hostname, port }];
  }
  if (given) return [{ socketPath: given.replace(/^unix:\/\//, '') }];
  const runtimeFolder = process.env.XDG_RUNTIME_DIR;
  return [
    { socketPath: '/var/run/docker.sock' },
    { socketPath: join(homedir(), '.docker/run/docker.sock') },
    ...(runtimeFolder ? [{ socketPath: join(runtimeFolder, 'docker.sock') }] : []),
  ];
}

function answersPing(address: object): Promise<boolean> {
  return new Promise((resolve) => {
    const ping = request({ ...address, path: '/_ping', timeout: engineLimit }, (response) => {
      response.resume();
      resolve(true);
    });
    ping.on('timeout', () => ping.destroy(new Error('no response')));
    ping.on('error', () => resolve(false));
    ping.end();
  });
}
