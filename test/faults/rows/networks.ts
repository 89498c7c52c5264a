import { setTimeout as sleep } from 'node:timers/promises';
import { createCaller } from '../../lab/load/caller.ts';
import type { Stage } from '../../lab/stage/stage.ts';
import { startProxy, type TcpProxy } from '../../stage/proxy.ts';
import { until } from '../../stage/until.ts';
import { TROUBLES } from '../interruptions.ts';
import type { Row } from '../run-row.ts';

/** Calls something with each trouble of a network, and a proxy to a port, in each trial. */
async function withTroubles(
  { defer, tries }: Stage,
  port: number,
  call: (proxy: TcpProxy, bringAbout: () => unknown, name: string) => Promise<void>,
): Promise<void> {
  for (const _ of tries()) {
    for (const [name, bringAbout] of Object.entries(TROUBLES)) {
      const proxy = await startProxy({ host: '127.0.0.1', port });
      defer(() => proxy.stop());
      await call(proxy, () => bringAbout(proxy), name);
    }
  }
}

export const keyNetwork: Row = {
  name: 'key-network',
  promise:
    'The network to the identity provider is in each of these states at the start: probes answer, and it recovers.',
  trials: 1,
  async run(stage) {
    const { startService, issuer, claim, recovered } = stage;
    await withTroubles(stage, Number(new URL(issuer.jwksUri).port), async (proxy, bringAbout, name) => {
      await bringAbout();
      const jwks = `http://${proxy.host}:${proxy.port}/jwks`;
      const service = await startService({ SVC_OAUTH_JWKS_URI: jwks });
      const caller = service.caller();
      const { status } = await caller.read('?limit=1');
      claim(`with ${name} the response is 200 or 503`, status === 200 || status === 503, status);
      await proxy.pass();
      const passes = performance.now();
      await until('a caller is let in', async () => (await caller.read('?limit=1')).status === 200, {
        seconds: 15,
      });
      recovered((performance.now() - passes) / 1000);
      caller.close();
    });
  },
};

export const callerNetwork: Row = {
  name: 'caller-network',
  promise:
    'The network to the callers is in each of these states: those see what comes through, and nothing is lost.',
  trials: 2,
  async run(stage) {
    const { startService, claim, random, token } = stage;
    const service = await startService();
    await withTroubles(stage, Number(new URL(service.url).port), async (proxy, bringAbout) => {
      const url = `http://${proxy.host}:${proxy.port}`;
      const callers = createCaller({ url, token, ledger: service.ledger, connections: 16 });
      const asked = Array.from({ length: 200 }, async () => {
        await sleep(random.below(1000));
        const name = crypto.randomUUID();
        await callers.create({ email: `${name}@example.com` }, { 'idempotency-key': name });
      });
      await sleep(300);
      await bringAbout();
      await sleep(1500);
      await proxy.pass();
      await Promise.all(asked);
      callers.close();
    });
    const served = service.ledger.entries.filter(({ status }) => status === 201).length;
    claim('most callers were served', served > 0, served);
    await service.checkBooks();
  },
};
