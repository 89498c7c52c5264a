import { once } from 'node:events';
import type { ClientRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { FIRST_CHANGES, nextIn } from '../lab/ledger/changes.ts';
import { createCaller } from '../lab/load/caller.ts';
import { sideBySide } from '../lab/load/callers.ts';
import { PATIENCE_MS, runLoads } from '../lab/load/load.ts';
import type { Random } from '../lab/load/random.ts';
import { USERS, wireOf } from '../lab/load/wire.ts';
import type { ServiceUnderFault, Stage } from '../lab/stage/stage.ts';
import { connectTo as rawClient, requestText } from '../stage/connection.ts';
import { makeUpTokens } from '../stage/forge.ts';
import { holdUsers } from '../stage/locks.ts';
import type { startOtlpReceiver } from '../stage/otlp-receiver.ts';
import { errorResponse, findCreates, messagesThrough } from '../stage/postgres-messages.ts';
import type { TcpProxy } from '../stage/proxy.ts';
import { until } from '../stage/until.ts';
import { databaseInterruptions, type Interruption, networkInterruptions } from './interruptions.ts';
import { SLOW } from './rows/slow-clients.ts';

/** What a fault may break while a load goes on, all of it around the one service. */
export type Surroundings = Pick<Stage, 'postgres' | 'issuer' | 'claim' | 'token'> & {
  readonly service: ServiceUnderFault;
  readonly random: Random;
  /** Stands between the service and PostgreSQL. */
  readonly proxy: TcpProxy;
  readonly collector: Awaited<ReturnType<typeof startOtlpReceiver>>;
  /** Who reads the log. */
  readonly logReader: { isStalled: boolean };
};

/** Faults by name. Each has ended, and has been undone, when its promise resolves: within 25 seconds. */
type PassingFaults = Readonly<Record<string, (surroundings: Surroundings) => Promise<void>>>;

export type PassingFault = { readonly name: string; readonly bringAbout: PassingFaults[string] };

/** Interruptions that end after `longestMs` at most. */
const passing = (faults: Readonly<Record<string, Interruption>>, longestMs: number): PassingFaults =>
  Object.fromEntries(
    Object.entries(faults).map(([name, begin]) => [
      name,
      async (surroundings) => {
        const end = await begin(surroundings);
        await sleep(surroundings.random.below(longestMs));
        await end();
      },
    ]),
  );

/** PostgreSQL as a whole: its sessions, its processes, its locks, its willingness to write, the network to it and its messages. */
const databaseFaults: PassingFaults = {
  async 'sessions-killed'({ postgres, random }) {
    for (let times = 0; times < 10; times += 1) {
      await postgres.terminate();
      await sleep(random.below(400));
    }
  },
  ...passing(databaseInterruptions, 8000),
  ...passing(networkInterruptions, 5000),
  async 'table-locked'({ postgres, service, random }) {
    const callers = service.caller(100);
    const lock = await holdUsers(postgres);
    const responses = Array.from({ length: 100 }, () => callers.read('?limit=1'));
    await sleep(1000 + random.below(4000));
    await lock.release();
    await Promise.all(responses);
    callers.close();
  },
  async 'connections-forgotten'({ proxy, random }) {
    proxy.forget();
    await sleep(2000 + random.below(4000));
    // PostgreSQL, too, learns that the dead are dead.
    proxy.cutAll();
  },
  async 'outcome-unknown'({ proxy }) {
    let left = 5;
    proxy.answersThrough(() => {
      const isCreated = findCreates();
      return messagesThrough((type, message) => {
        if (!isCreated(type, message) || left === 0) return message;
        left -= 1;
        return errorResponse('40003');
      });
    });
    proxy.cutAll();
    await sleep(3000);
    await proxy.pass();
  },
};

/** In milliseconds: longer than the time between two fetches of a service that fetches every five seconds. */
const DURATION_MS = 8000;

/** What a huge response sends, at most. */
const CHUNK = Buffer.alloc(1024 * 1024, ' ');
const CHUNKS = 300;

/** How a key server can be unwell: what becomes of a request for the keys. */
const MOODS: Readonly<Record<string, Parameters<Surroundings['issuer']['answer']>[0]>> = {
  failing: (_request, response) => void response.writeHead(500).end('no'),
  slow: () => {},
  garbage: (_request, response) => void response.writeHead(200).end('{"keys":[{"kty":"RSA","n":17}, 4'),
  empty: (_request, response) => void response.writeHead(200).end('{"keys":[]}'),
  redirecting: ({ url }, response) => void response.writeHead(302, { location: `${url}/again` }).end(),
  cutting: (request) => void request.socket.resetAndDestroy(),
  async huge(_request, response) {
    response.on('error', () => {}).writeHead(200, { 'content-type': 'application/json' });
    for (let chunk = 0; chunk < CHUNKS && !response.destroyed; chunk += 1) {
      if (!response.write(CHUNK)) await Promise.race([once(response, 'drain'), once(response, 'close')]);
    }
    response.end();
  },
};

/** The identity provider and its keys, and forged tokens. */
const identityProviderFaults: PassingFaults = {
  async 'key-server-unwell'({ issuer, random }) {
    issuer.answer(random.pick(Object.values(MOODS)));
    await sleep(DURATION_MS);
    issuer.answerNormally();
  },
  async 'keys-rotated'({ issuer, service }) {
    await issuer.rotate();
    const caller = service.caller();
    const isAccepted = async () => (await caller.read('?limit=1')).status === 200;
    await until('the new key is accepted', isAccepted, { seconds: 5 });
    caller.close();
  },
  async 'tokens-forged'({ service, token, claim }) {
    const tokens = makeUpTokens(await token(), 200).values();
    const forged = createCaller({
      ...service,
      token: async () => String(tokens.next().value),
      connections: 8,
    });
    const responses = await Promise.all(Array.from({ length: 200 }, () => forged.read('?limit=1')));
    const accepted = responses.filter(({ status }) => status >= 200 && status < 300);
    claim('no forged token is accepted', accepted.length === 0, accepted[0]);
    forged.close();
  },
};

/** What callers do that they should not, and too many of them. */
const callerFaults: PassingFaults = {
  async 'callers-leave'({ service, random }) {
    const callers = service.caller(20);
    const leave = (outgoing: ClientRequest) => void setTimeout(() => outgoing.destroy(), random.below(8));
    await sideBySide(20, 300, async () => {
      const name = crypto.randomUUID();
      const fields = { email: `${name}@example.com` };
      const headers = { 'idempotency-key': name };
      await callers.send({ operation: 'create', fields, headers }, leave);
    });
    callers.close();
  },
  async 'requests-cut-off'({ service, token, random }) {
    const Authorization = `Bearer ${await token()}`;
    const body = JSON.stringify({ email: 'cut-off@example.com' });
    const text = requestText('POST /api/v1/users/', { Authorization }, body);
    await sideBySide(40, 400, async () => {
      const client = await rawClient(service.url);
      client.send(text.slice(0, random.below(text.length)));
      await sleep(random.below(6));
      if (random.chance(0.3)) {
        client.halfClose();
        await client.untilOver(2000);
      }
      client.abort();
    });
  },
  async 'clients-slow'({ service, token, random }) {
    const authorization = `Bearer ${await token()}`;
    const opened = Object.entries(SLOW).flatMap(([kind, open]) =>
      Array.from({ length: kind === 'reading' ? 4 : 40 }, () => open(service.url, authorization)),
    );
    const clients = await Promise.all(opened);
    await sleep(3000 + random.below(12_000));
    for (const client of clients) client.abort();
  },
  async 'connections-silent'({ service, random }) {
    const clients = await Promise.all(Array.from({ length: 300 }, () => rawClient(service.url)));
    await sleep(1000 + random.below(7000));
    for (const client of clients) client.abort();
  },
  async 'bodies-large'({ service }) {
    const callers = service.caller(64);
    // The email is none.
    const fields = { email: 'a@b', full_name: 'x'.repeat(65_000) };
    await Promise.all(Array.from({ length: 64 }, () => callers.create(fields)));
    callers.close();
  },
  async overload({ service, token }) {
    const list = [wireOf({ method: 'GET', target: `${USERS}?limit=2`, token: await token() })];
    const port = Number(new URL(service.url).port);
    const job = { port, requests: { list }, patienceMs: PATIENCE_MS, connections: 400 };
    await runLoads({ ...job, rate: 15_000, seconds: 2 });
  },
  async 'readers-wait-and-leave'({ service, token, random }) {
    const headers = { authorization: `Bearer ${await token()}` };
    const head = await fetch(`${service.url}/api/v1/users/changes?cursor=now&limit=0`, { headers });
    const next = nextIn(head) ?? FIRST_CHANGES;
    const waiting = Array.from({ length: 200 }, async () => {
      const client = await rawClient(service.url);
      client.send(requestText(`GET ${next}&wait=20`, { Authorization: headers.authorization }));
      await sleep(random.below(3000));
      client.abort();
    });
    await Promise.all([head.body?.cancel(), ...waiting]);
  },
};

/** Who reads the log and takes the spans; and the machine, which stands still. */
const observerFaults: PassingFaults = {
  async 'log-reader-stalled'({ service, logReader }) {
    const callers = service.caller(20);
    logReader.isStalled = true;
    // More than the pipe holds, and the queue before it.
    await Promise.all(Array.from({ length: 400 }, () => callers.read('/x'.repeat(2500))));
    await sleep(3000);
    logReader.isStalled = false;
    callers.close();
  },
  async 'collector-unwell'({ collector, random }) {
    const isHanging = random.chance(0.5);
    collector.answer((response) => {
      if (!isHanging) response.writeHead(500).end();
    });
    await sleep(8000);
    collector.answerNormally();
  },
  async 'service-stopped'({ service, random }) {
    service.signal('SIGSTOP');
    await sleep(1000 + random.below(3000));
    service.signal('SIGCONT');
  },
};

/** Every fault that ends within seconds, to be brought about while a load goes on. */
export const passingFaults: readonly PassingFault[] = Object.entries({
  ...databaseFaults,
  ...identityProviderFaults,
  ...callerFaults,
  ...observerFaults,
}).map(([name, bringAbout]) => ({ name, bringAbout }));
