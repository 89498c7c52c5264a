import { createServer } from 'node:http';
import { afterAll, expect, test } from 'vitest';
import { listen } from '../../stage/listening.ts';
import { type Entry, Ledger } from './ledger.ts';
import { faultsAfterwards, type Suspect } from './oracle.ts';

let status = 200;
const server = createServer((_, response) => response.writeHead(status).end());
const { port } = await listen(server);
afterAll(() => server.close().closeAllConnections());

/** What a service leaves behind: a refusal with its event, and an end in order. */
function createRemains() {
  const problem = { type: 'urn:svc:error:not_found_error', title: 'Not Found', detail: 'It is not there.' };
  return {
    plainStatus: 200,
    exit: { code: 0, signal: null },
    sessions: 11,
    errors: '',
    printed: 'a***@example.com',
    events: [{ event: 'app_error', request_id: 'one', status_code: 404 }, { event: 'shutdown_drained' }],
    headers: { 'content-type': 'application/problem+json', 'x-request-id': 'one' },
    status: 404,
    problem: { ...problem, status: 404, instance: '/x' },
  };
}

type Remains = ReturnType<typeof createRemains>;

async function faultsOf(remains: Remains): Promise<readonly string[]> {
  const ledger = new Ledger();
  ledger.enter({
    operation: 'read',
    method: 'GET',
    path: '/x?y',
    requestId: 'one',
    isLost: false,
    sent: 1,
    answered: 2,
    status: remains.status,
    responseHeaders: remains.headers,
    body: JSON.stringify(remains.problem),
  } satisfies Entry);
  status = remains.plainStatus;
  const host = {
    isAlive: () => true,
    signal: () => true,
    exited: Promise.resolve(remains.exit),
    errors: () => remains.errors,
    printed: () => remains.printed,
    events: () => remains.events,
  } as Partial<Suspect['host']> as Suspect['host'];
  const postgres = { countSessions: async () => remains.sessions };
  const url = `http://127.0.0.1:${port}`;
  return faultsAfterwards({ host, ledger, url, postgres, token: async () => '', sessions: () => 11 });
}

test('the oracle finds no fault in a service that ends in order', async () => {
  expect(await faultsOf(createRemains())).toEqual([]);
});

test.each<[string, (remains: Remains) => unknown]>([
  [
    'of 100 plain requests afterwards: [[503,100]]',
    (remains) => Object.assign(remains, { plainStatus: 503 }),
  ],
  ['12 sessions, and the pools allow 11', (remains) => Object.assign(remains, { sessions: 12 })],
  ['it ended with 1, shutdown_drained', ({ exit }) => Object.assign(exit, { code: 1 })],
  ['it ended with 0, no drain', ({ events }) => events.pop()],
  ['standard error: x', (remains) => Object.assign(remains, { errors: 'x' })],
  ['the log shows ada@example.com', (remains) => Object.assign(remains, { printed: 'ada@example.com' })],
  ['the log shows eyJhbGciOiJSUzI1', (remains) => Object.assign(remains, { printed: 'eyJhbGciOiJSUzI1' })],
  ['1 refusals have no event in the log', ({ events }) => events.shift()],
  ['1 refusals have more than one event', ({ events }) => events.push({ ...events[0], event: 'app_error' })],
  ['1 defects', ({ events }) => Object.assign(events[0] ?? {}, { status_code: 500 })],
  ['GET /x?y 500, a defect', (remains) => Object.assign(remains, { status: 500 })],
  ['GET /x?y 404 has the request ID two', ({ headers }) => Object.assign(headers, { 'x-request-id': 'two' })],
  ['GET /x?y 404 shows its innards', ({ problem }) => Object.assign(problem, { detail: 'at f (/a.ts:1:2)' })],
  ['GET /x?y 404 is not a complete problem', ({ problem }) => Object.assign(problem, { instance: '/x?y' })],
  [
    '1 times 503 without an event, and 0 counted together',
    (remains) => {
      Object.assign(remains, { status: 503, problem: { ...remains.problem, status: 503 } });
      remains.events.shift();
    },
  ],
])('the oracle finds: %s', async (fault, change) => {
  const remains = createRemains();
  change(remains);

  expect(await faultsOf(remains)).toEqual([expect.stringContaining(fault)]);
});
