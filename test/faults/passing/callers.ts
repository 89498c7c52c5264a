import type { ClientRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { FIRST_CHANGES } from '../../lab/ledger/changes.ts';
import { sideBySide } from '../../lab/load/side-by-side.ts';
import { run } from '../../overload/load.ts';
import { rawClient, requestText } from '../../stage/raw-client.ts';
import { SLOW } from '../rows/slow-clients.ts';
import type { PassingFault } from './passing-fault.ts';

/** What callers do that they should not, and too many of them. */
export const callerFaults: readonly PassingFault[] = [
  {
    name: 'callers-leave',
    async bringAbout({ service, random }) {
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
  },
  {
    name: 'requests-cut-off',
    async bringAbout({ service, token, random }) {
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
  },
  {
    name: 'clients-slow',
    async bringAbout({ service, token, random }) {
      const authorization = `Bearer ${await token()}`;
      const opened = Object.entries(SLOW).flatMap(([kind, open]) =>
        Array.from({ length: kind === 'reading' ? 4 : 40 }, () => open(service.url, authorization)),
      );
      const clients = await Promise.all(opened);
      await sleep(3000 + random.below(12_000));
      for (const client of clients) client.abort();
    },
  },
  {
    name: 'connections-silent',
    async bringAbout({ service, random }) {
      const clients = await Promise.all(Array.from({ length: 300 }, () => rawClient(service.url)));
      await sleep(1000 + random.below(7000));
      for (const client of clients) client.abort();
    },
  },
  {
    name: 'bodies-large',
    async bringAbout({ service }) {
      const callers = service.caller(64);
      // The email is none.
      const fields = { email: 'a@b', full_name: 'x'.repeat(65_000) };
      await Promise.all(Array.from({ length: 64 }, () => callers.create(fields)));
      callers.close();
    },
  },
  {
    name: 'overload',
    async bringAbout({ service, token }) {
      const { host, port } = new URL(service.url);
      const headers = `Host: ${host}\r\nAuthorization: Bearer ${await token()}`;
      const request = `GET /api/v1/users/?limit=2 HTTP/1.1\r\n${headers}\r\n\r\n`;
      await run({ port: Number(port), requests: [request], connections: 400, rate: 15_000, seconds: 2 });
    },
  },
  {
    name: 'readers-wait-and-leave',
    async bringAbout({ service, token, random }) {
      const headers = { authorization: `Bearer ${await token()}` };
      const head = await fetch(`${service.url}/api/v1/users/changes?cursor=now&limit=0`, { headers });
      const [, next = FIRST_CHANGES] = /<([^>]+)>; rel="next"/.exec(head.headers.get('link') ?? '') ?? [];
      const waiting = Array.from({ length: 200 }, async () => {
        const client = await rawClient(service.url);
        client.send(requestText(`GET ${next}&wait=20`, { Authorization: headers.authorization }));
        await sleep(random.below(3000));
        client.abort();
      });
      await Promise.all([head.body?.cancel(), ...waiting]);
    },
  },
];
