import { truncateSync } from 'node:fs';
import { expect, onTestFinished, test } from 'vitest';
import { freePort } from '../../host/development/free-port.ts';
import { type BuiltService, startBuiltService } from '../stage/built-service.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { holdUsers, PATIENT, untilUnderWay } from '../stage/locks.ts';
import { createPipe } from '../stage/pipe.ts';
import { readResponse, TIMESTAMP } from '../stage/responses.ts';
import { times, until } from '../stage/until.ts';

let service: BuiltService;

/** More lines of 10 KB than any queue holds. */
const REQUESTS = 500;

async function startIntoPipe() {
  const pipe = createPipe();
  onTestFinished(() => pipe.remove());
  service = await forThisTest(startBuiltService, {}, { output: pipe });
  return pipe;
}

/** Sends requests with one log line each, and expects the usual responses. */
async function makeRequests(count: number): Promise<void> {
  const path = '/x'.repeat(5000);
  for (let sent = 0; sent < count; sent += 50) {
    const responses = await times(50, async () => readResponse(await fetch(service.url + path)));
    expect(new Set(responses.map(({ status }) => status))).toEqual(new Set([404]));
  }
}

async function expectToServe(): Promise<void> {
  const created = await service.call('POST', '/api/v1/users/', { email: 'meanwhile@example.com' });
  const [health, ready] = await Promise.all([fetch(`${service.url}/health`), fetch(`${service.url}/ready`)]);
  expect([created.status, health.status, ready.status]).toEqual([201, 200, 200]);
}

/** Reads until the dropped lines are reported, and expects that no other line is missing and none is truncated. */
async function expectAllAccountedFor(read: () => string): Promise<void> {
  const lines = await until('the count of dropped lines', () => {
    const text = read();
    return text.includes('log_lines_dropped') && text.endsWith('\n') && text.split('\n').slice(0, -1);
  });
  const events = lines.map((line) => JSON.parse(line));
  const logged = events.filter(({ path }) => path?.startsWith('/x/')).length;
  const reports = events.filter(({ event }) => event === 'log_lines_dropped');
  // Creating the user is one more line.
  const users = events.filter(({ event }) => event === 'user_created').length;
  expect(reports).toEqual([
    {
      timestamp: expect.stringMatching(TIMESTAMP),
      level: 'error',
      event: 'log_lines_dropped',
      count: REQUESTS + 1 - logged - users,
    },
  ]);
  expect(logged).toBeGreaterThan(50);
  expect(reports[0].count).toBeGreaterThan(50);
}

test('while the reader stalls, the service continues, and lines are dropped and counted', async () => {
  const { read } = await startIntoPipe();
  await makeRequests(REQUESTS);
  await expectToServe();

  await expectAllAccountedFor(read);
  expect(service.errors()).toBe('');
});

test('after the reader has died, the service continues, and reports the number of dropped lines to the next one', async () => {
  const { die, revive, read } = await startIntoPipe();
  read();
  die();
  await makeRequests(REQUESTS);
  await expectToServe();
  revive();

  await expectAllAccountedFor(read);
  expect(service.errors()).toBe('');
});

test('on a full disk the service continues, and reports the number of dropped lines when there is space again', async () => {
  // The file must not grow: a limit ends a write in the same way as a full disk.
  service = await forThisTest(
    startBuiltService,
    {},
    { runBy: ['sh', '-c', 'ulimit -f 3072; exec "$@"', 'sh'] },
  );
  await makeRequests(REQUESTS);
  await expectToServe();
  const before = service.printed();
  truncateSync(service.outputFile);

  await expectAllAccountedFor(() => before + service.printed());
  expect(service.errors()).toBe('');
});

test('the service serves without a standard output', async () => {
  const runBy = ['sh', '-c', 'exec "$@" >&- 2>&-', 'sh'];
  service = await forThisTest(startBuiltService, { SVC_PORT: String(await freePort()) }, { runBy });
  await expectToServe();

  service.signal('SIGTERM');
  expect(await service.exited).toEqual({ code: 0, signal: null });
});

test('at the exit a working reader gets every complete line', async () => {
  // Less in total than the queue of lines holds.
  const held = 120;
  service = await forThisTest(
    startBuiltService,
    // Enough time for all of them to arrive on a busy machine.
    { ...PATIENT, SVC_OTEL_ENABLED: 'true', SVC_SHUTDOWN_DRAIN_TIMEOUT: '3' },
    { runBy: ['bash', '-c', 'exec "$@" > >(cat)', 'bash'] },
  );
  const lock = await holdUsers(service.database);
  // Spans contain it, too, so all of them exceed the buffer of a pipe many times.
  const headers = { 'user-agent': 'x'.repeat(2000) };
  const settled = times(held, () =>
    service.call('GET', '/api/v1/users/', undefined, { headers }).catch(() => {}),
  );
  // As many as can wait for a lock in PostgreSQL at once. The others wait for these.
  await untilUnderWay(2, service.database);
  service.signal('SIGTERM');
  await Promise.all([settled, service.exited]);
  await lock.release();

  const logged = () => service.events('app_error').filter(({ path }) => path === '/api/v1/users/').length;
  const spans = () => service.spans().filter(({ kind }) => kind === 'SERVER').length;
  // The reader may have read lines that it has not written yet.
  await until('every line', () => logged() >= held && spans() >= held && service.printed().endsWith('\n'));
  expect(service.events('shutdown_drain_timeout')).toMatchObject([{ in_flight: held }]);
  expect([logged(), spans()]).toEqual([held, held]);
});
