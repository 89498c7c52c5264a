import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import { untilReady } from '../stage/caller.ts';

const run = promisify(execFile);
const compose = await findCompose();
if (!compose) process.stdout.write('SKIPPED: infra/compose.yaml, for there is no Docker Compose here.\n');

describe.skipIf(!compose)('docker compose -f infra/compose.yaml up', () => {
  let service: string;
  let issuer: string;
  let environment: NodeJS.ProcessEnv;

  const call = (...words: readonly string[]) => {
    const [program = '', ...first] = compose ?? [];
    const project = ['--project-name', 'user-management-test', '--file', 'infra/compose.yaml'];
    return run(program, [...first, ...project, ...words], { env: environment });
  };

  beforeAll(async () => {
    const [port, issuerPort] = [await freePort(), await freePort()];
    environment = { ...process.env, TAG: 'test', SVC_PORT: String(port), ISSUER_PORT: String(issuerPort) };
    service = `http://localhost:${port}`;
    issuer = `http://localhost:${issuerPort}`;
    await call('up', '--detach');
    await untilReady(service);
  });

  afterAll(() => call('down', '--volumes', '--timeout', '5'));

  test('starts an API that accepts the tokens of its issuer', async () => {
    const body = new URLSearchParams({ grant_type: 'client_credentials', client_id: 'newcomer' });
    const token = (await (await fetch(`${issuer}/token`, { method: 'POST', body })).json()) as {
      access_token: string;
    };
    const response = await fetch(`${service}/api/v1/users/`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token.access_token}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ email: 'ada@example.com' }),
    });

    expect(response.status).toBe(201);
    expect(await response.json()).toMatchObject({ email: 'ada@example.com', is_active: true });
  });

  test('serves the documentation', async () => {
    const statuses = await Promise.all(
      ['/docs', '/redoc'].map(async (path) => (await fetch(service + path)).status),
    );
    expect(statuses).toEqual([200, 200]);
  });

  test('logs how to get a token', async () => {
    const { stdout } = await call('logs', 'issuer');
    expect(stdout).toContain(`curl -s ${issuer}/token -d grant_type=client_credentials`);
  });
});

/** The plugin of the Docker client, or the older program. */
async function findCompose(): Promise<readonly string[] | undefined> {
  for (const words of [['docker', 'compose'], ['docker-compose']]) {
    const [program = '', ...rest] = words;
    const isThere = await run(program, [...rest, 'version']).then(
      () => true,
      () => false,
    );
    if (isThere) return words;
  }
  return undefined;
}
