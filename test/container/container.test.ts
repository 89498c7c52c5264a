import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { accept } from '../accept/accept.ts';
import { until } from '../stage/until.ts';
import { docker, images, nodeInside } from './docker.ts';
import { type ServiceContainer, startStage } from './stage.ts';

let stage: Awaited<ReturnType<typeof startStage>>;
let service: ServiceContainer;
let headers: Record<string, string>;

beforeAll(async () => {
  stage = await startStage();
  const token = await stage.token('users.read users.write');
  headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
  await createDatabase('plain');
  service = await stage.startService('plain');
  await untilStatus(service, '/ready', 200);
});

afterAll(() => stage?.strike());

describe('the container', () => {
  test('passes the acceptance checks', async () => {
    const { code, report } = await accept([service.url, '--profile', 'full'], {
      ACCEPT_TOKEN_URL: stage.tokenUrl,
      ACCEPT_CLIENT_ID: 'acceptance',
    });

    expect(code, report).toBe(0);
  });

  test('requires a token and has no documentation', async () => {
    const statuses = await Promise.all(
      ['/api/v1/users/', '/docs', '/redoc'].map(async (path) => (await fetch(service.url + path)).status),
    );
    expect(statuses).toEqual([401, 404, 404]);
  });

  test('is one process of user 65532, without capabilities and without a way to get any', async () => {
    const status = await nodeInside(
      service.id,
      "process.stdout.write(require('node:fs').readFileSync('/proc/1/status'))",
    );
    const field = (name: string) => new RegExp(`^${name}:\\s*(.*)$`, 'm').exec(status)?.[1];

    expect(field('Name')).toMatch(/^(node|MainThread)$/);
    expect(field('Uid')?.split('\t')).toEqual(['65532', '65532', '65532', '65532']);
    expect([field('CapPrm'), field('CapEff'), field('CapBnd')]).toEqual(Array(3).fill('0000000000000000'));
    expect(field('NoNewPrivs')).toBe('1');
  });

  test('needs no writable directory', async () => {
    const program = `
      const { writeFileSync } = require('node:fs');
      for (const folder of ['/', '/app', '/app/compiled', '/tmp', '/home/nonroot']) {
        try { writeFileSync(folder + '/file', ''); console.log(folder); } catch ({ code }) { console.log(code); }
      }`;
    expect((await nodeInside(service.id, program)).split('\n')).toEqual(Array(5).fill('EROFS'));
  });

  test('becomes healthy by its health check', async () => {
    await until('it is healthy', async () => (await stateOf(service, 'Health.Status')) === 'healthy');
  });

  test('serves /health within 300 ms of its start, or five times the time of a bare server', async () => {
    const program = readFileSync(new URL('start-time.mjs', import.meta.url), 'utf8');
    const options = stage.restricted('plain', { SVC_ENV: 'production', SVC_OTEL_ENABLED: 'true' });
    const words = ['--input-type=module', '--eval', program, '300'];
    const pairs: [number, number][] = JSON.parse(
      await docker('run', '--rm', ...options, images.service, ...words),
    );
    process.stdout.write(`Milliseconds to the first response, bare and service: ${pairs.join(' ')}\n`);

    // The fastest starts count, because the others shared the processor with other programs.
    const [bare, service] = [0, 1].map((place) => Math.min(...pairs.map((pair) => pair[place] as number)));
    expect(service).toBeLessThan(Math.max(300, 5 * (bare as number)));
  });

  test('loses no request when it is stopped', async () => {
    await createDatabase('stopped');
    const stopped = await stage.startService('stopped', { SVC_SHUTDOWN_READINESS_DELAY: '1' });
    await untilStatus(stopped, '/ready', 200);
    const client = await stage.connect('stopped');
    await client.query('BEGIN');
    await client.query('LOCK TABLE users IN ACCESS EXCLUSIVE MODE');

    const emails = ['one@example.com', 'two@example.com', 'three@example.com'];
    const responses = emails.map((email) => createUser(stopped, email));
    await pause(300);
    const stopping = docker('stop', '-t', '33', stopped.id);
    await untilStatus(stopped, '/ready', 503);
    // Now the delay is over and the drain waits for these three.
    await pause(1200);
    await client.query('COMMIT');

    expect((await Promise.all(responses)).map(({ status }) => status)).toEqual([201, 201, 201]);
    await stopping;
    expect(await stateOf(stopped, 'ExitCode')).toBe('0');
    const { rows } = await client.query('SELECT email FROM users ORDER BY email');
    await client.end();
    expect(rows.map(({ email }) => email)).toEqual(emails.toSorted());
    expect(await docker('logs', stopped.id)).toContain('"shutdown_drained"');
  });

  test('serves its metrics for Prometheus', async () => {
    const metrics = { OTEL_TRACES_EXPORTER: 'none', OTEL_METRICS_EXPORTER: 'prometheus' };
    const metered = await stage.startService('plain', { SVC_OTEL_ENABLED: 'true', ...metrics });
    await untilStatus(metered, '/ready', 200);
    const program =
      "fetch('http://127.0.0.1:9464/metrics').then(async (response) => process.stdout.write(await response.text()))";

    expect(await nodeInside(metered.id, program)).toMatch(/^process_memory_usage\{.*\} \d+$/m);
  });

  test('does not run migrations if SVC_POSTGRES_MIGRATE is false', async () => {
    await createDatabase('migrated');
    const waiting = await stage.startService('migrated', { SVC_POSTGRES_MIGRATE: 'false' });
    await untilStatus(waiting, '/health', 200);
    expect((await fetch(`${waiting.url}/ready`)).status).toBe(503);

    await docker('run', '--rm', ...stage.restricted('migrated'), images.service, '/app/migrate.mjs');

    await untilStatus(waiting, '/ready', 200);
  });

  test('ends with exit code 1 and names the missing settings if it has none', async () => {
    const error = await docker('run', '--rm', images.service).catch((reason) => reason);
    expect(error).toMatchObject({ code: 1, stderr: expect.stringContaining('SVC_OAUTH_ISSUER is required') });
  });
});

/** An empty database, also when its test is repeated. */
async function createDatabase(name: string): Promise<void> {
  const client = await stage.connect();
  await client.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  await client.query(`CREATE DATABASE ${name}`);
  await client.end();
}

function createUser({ url }: ServiceContainer, email: string): Promise<Response> {
  return fetch(`${url}/api/v1/users/`, { method: 'POST', headers, body: JSON.stringify({ email }) });
}

async function untilStatus({ url }: ServiceContainer, path: string, status: number): Promise<void> {
  const ask = async () => (await fetch(url + path).catch(() => undefined))?.status === status;
  await until(`${path} is ${status}`, ask, { seconds: 60 });
}

function stateOf({ id }: ServiceContainer, field: string): Promise<string> {
  return docker('inspect', '--format', `{{.State.${field}}}`, id);
}
