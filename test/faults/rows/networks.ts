import { setTimeout as sleep } from 'node:timers/promises';
import { createCaller } from '../../lab/load/caller.ts';
import { TROUBLES } from '../interruptions.ts';
import type { Row } from '../run-row.ts';

export const callerNetwork: Row = {
  name: 'caller-network',
  promise:
    'The network to the callers is in each of these states: those see what comes through, and nothing is lost.',
  trials: 2,
  async run({ startService, startProxy, claim, random, token, tries }) {
    const service = await startService();
    const port = Number(new URL(service.url).port);
    for (const _ of tries()) {
      for (const bringAbout of Object.values(TROUBLES)) {
        const proxy = await startProxy({ host: '127.0.0.1', port });
        const url = `http://${proxy.host}:${proxy.port}`;
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
      }
    }
    const served = service.ledger.entries.filter(({ status }) => status === 201).length;
    claim('most callers were served', served > 0, served);
    await service.checkBooks();
  },
};
