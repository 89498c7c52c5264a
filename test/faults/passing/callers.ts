import type { ClientRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { FIRST_CHANGES, nextIn } from '../../lab/ledger/changes.ts';
import { sideBySide } from '../../lab/load/callers.ts';
import { PATIENCE_MS, runLoads } from '../../lab/load/load.ts';
import { USERS, wireOf } from '../../lab/load/wire.ts';
import { connectTo as rawClient, requestText } from '../../stage/connection.ts';
import { SLOW } from '../rows/slow-clients.ts';
import type { PassingFaults } from './passing-fault.ts';

/** What callers do that they should not, and too many of them. */
export const callerFaults: PassingFaults = {
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
