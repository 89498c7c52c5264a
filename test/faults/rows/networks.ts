import { setTimeout as sleep } from 'node:timers/promises';
import { createCaller } from '../../lab/load/caller.ts';
import { byteByByte, cutAfter, late, startProxy, type TcpProxy } from '../../stage/proxy.ts';
import { until } from '../../stage/until.ts';
import type { Row } from '../run-row.ts';

/** What is wrong with a network, by name. */
export const TROUBLES: Readonly<Record<string, (proxy: TcpProxy) => unknown>> = {
  latency: (proxy) => {
    proxy.answersThrough(late(50));
    proxy.cutAll();
  },
  'one byte at a time': (proxy) => {
    proxy.answersThrough(byteByByte(0));
    proxy.requestsThrough(byteByByte(0));
    proxy.cutAll();
  },
  'cut after some bytes': (proxy) => {
    proxy.answersThrough(cutAfter(700));
    proxy.cutAll();
  },
  reset: (proxy) => proxy.reset(),
  close: (proxy) => proxy.close(),
  refuse: (proxy) => proxy.refuse(),
  'accept and hang': (proxy) => proxy.stall(),
};

export const postgresNetwork: Row = {
  name: 'postgres-network',
  promise:
    'The network to PostgreSQL is slow, cuts, closes, refuses or hangs: 503 at worst, nothing lost, recovery.',
  trials: 3,
  brief: 1,
  async run({ startService, proxyPostgres, trials, claim, tried, recovered }) {
    const proxy = await proxyPostgres();
    const service = await startService(proxy.through);
    for (const [name, bringAbout] of Array.from({ length: trials }, () => Object.entries(TROUBLES)).flat()) {
      const load = service.startLoad(16);
      await sleep(200);
      await bringAbout(proxy);
      await sleep(1500);
      await proxy.pass();
      const passes = performance.now();
      await sleep(1500);
      await load.stop();
      const first = Math.min(...service.ledger.successesAfter(passes).map(({ answered }) => answered));
      recovered((first - passes) / 1000);
      claim(`service goes on after ${name}`, first - passes <= 1000, first - passes);
      tried();
    }
    claim('every answer is within 5 seconds', service.ledger.longestAnswer() <= 5000);
    await service.checkBooks();
  },
};

export const keyNetwork: Row = {
  name: 'key-network',
  promise:
    'The network to the identity provider is in each of these states at the start: probes answer, and it recovers.',
  trials: 1,
  async run({ startService, issuer, defer, trials, claim, tried, recovered }) {
    for (const [name, bringAbout] of Array.from({ length: trials }, () => Object.entries(TROUBLES)).flat()) {
      const proxy = await startProxy({ host: '127.0.0.1', port: Number(new URL(issuer.jwksUri).port) });
      defer(() => proxy.stop());
      await bringAbout(proxy);
      const jwks = `http://${proxy.host}:${proxy.port}/jwks`;
      const service = await startService({ SVC_OAUTH_JWKS_URI: jwks });
      const caller = service.caller();
      const { status } = await caller.read('?limit=1');
      claim(`with ${name} the answer is 200 or 503`, status === 200 || status === 503, status);
      await proxy.pass();
      const passes = performance.now();
      await until('a caller is let in', async () => (await caller.read('?limit=1')).status === 200, {
        seconds: 15,
      });
      recovered((performance.now() - passes) / 1000);
      caller.close();
      tried();
    }
  },
};

export const callerNetwork: Row = {
  name: 'caller-network',
  promise:
    'The network to the callers is in each of these states: those see what comes through, and nothing is lost.',
  trials: 2,
  async run({ startService, defer, trials, claim, tried, random, token }) {
    const service = await startService();
    const { port } = new URL(service.url);
    const proxy = await startProxy({ host: '127.0.0.1', port: Number(port) });
    defer(() => proxy.stop());
    const url = `http://${proxy.host}:${proxy.port}`;
    for (const [, bringAbout] of Array.from({ length: trials }, () => Object.entries(TROUBLES)).flat()) {
      const callers = createCaller({ url, token, ledger: service.ledger, connections: 16 });
      const asked = Array.from({ length: 200 }, async () => {
        await sleep(random.below(1000));
        const name = crypto.randomUUID();
        await callers.create({ email: `${name}@example.com` }, { 'idempotency-key': name });
      });
      await sleep(300);
      await bringAbout(proxy);
      await sleep(1500);
      await proxy.pass();
      await Promise.all(asked);
      callers.close();
      tried();
    }
    const served = service.ledger.entries.filter(({ status }) => status === 201).length;
    claim('most callers were served', served > 0, served);
    await service.checkBooks();
  },
};
