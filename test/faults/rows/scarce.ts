import { setTimeout as sleep } from 'node:timers/promises';
import { type Connection as RawClient, connectTo as rawClient, requestText } from '../../stage/connection.ts';
import { until } from '../../stage/until.ts';
import type { Row } from '../run-row.ts';

/** A heap of 128 MB, besides the options of `npm start`. */
const HEAP_OF_128 = { NODE_OPTIONS: '--max-old-space-size=128' };

/** In bytes, of the 65,536 that are allowed. */
const BODY_BYTES = 65_000;
const LONG = 'x'.repeat(BODY_BYTES);

/** Bodies of 64 KiB that are refused and that are accepted, by the number of the request. */
const BODIES: readonly ((n: number) => object)[] = [
  () => ({ email: 'a@b', full_name: LONG }),
  (n) => ({ email: `large-${n}@example.com`, unknown: LONG }),
];

const CALLERS = 512;

export const largeBodies: Row = {
  name: 'large-bodies',
  promise:
    '512 bodies of 64 KiB at once, three times in a row, cost 100 MB at most, refused or accepted, and a heap of 128 MB survives them.',
  trials: 3,
  brief: 1,
  async run({ startService, tries, claim, token, figures }) {
    const authorization = `Bearer ${await token()}`;
    let sent = 0;
    for (const variables of [{}, HEAP_OF_128]) {
      for (const bodyOf of BODIES) {
        const service = await startService(variables);
        const atRest = await service.memoryAtRest();
        for (const _ of tries()) {
          // Everything is sent before anything is received.
          const clients = await Promise.all(Array.from({ length: CALLERS }, () => rawClient(service.url)));
          for (const client of clients) {
            sent += 1;
            const body = JSON.stringify(bodyOf(sent));
            const fields = { Authorization: authorization, Connection: 'close' };
            client.send(requestText('POST /api/v1/users/', fields, body));
          }
          await Promise.all(clients.map((client) => client.untilOver(20_000)));
          const statuses = clients.map((client) => client.statuses()[0] ?? 0);
          const odd = statuses.filter((status) => ![201, 422, 503].includes(status));
          claim('each is answered, or refused at admission', odd.length === 0, odd);
          for (const client of clients) client.abort();
        }
        const growth = Math.round(service.mostMemory() - atRest);
        figures.memoryChange = Math.max(figures.memoryChange, growth);
        claim('it has grown by 100 MB at most', growth <= 100, growth);
      }
    }
  },
};

/** In megabytes. */
const MEMORY_LIMIT_MB = 160;

export const steadyLoad: Row = {
  name: 'steady-load',
  promise: 'In a heap of 128 MB, 64 callers that create, update and read cost 160 MB at most, in all.',
  trials: 30,
  brief: 5,
  async run({ startService, tries, claim, figures }) {
    const service = await startService(HEAP_OF_128);
    const atRest = await service.memoryAtRest();
    const load = service.startLoad(64);
    for (const _ of tries()) await sleep(1000);
    await load.stop();
    figures.memoryChange = Math.round(service.mostMemory() - atRest);
    claim('it takes 160 MB at most', service.mostMemory() <= MEMORY_LIMIT_MB, service.mostMemory());
    await service.checkBooks();
  },
};

export const fewDescriptors: Row = {
  name: 'few-descriptors',
  promise:
    'The process runs out of file descriptors: no crash, and service at once when there are some again.',
  trials: 10,
  brief: 2,
  async run({ startService, tries, claim, recovered }) {
    const runBy = ['sh', '-c', 'ulimit -n 64; exec "$@"', 'sh'];
    const service = await startService({}, { runBy });
    for (const _ of tries()) {
      const held: RawClient[] = [];
      for (let n = 0; n < 200; n += 1) {
        const client = await Promise.race([rawClient(service.url), sleep(50)]);
        if (client) held.push(client);
      }
      await sleep(300);
      claim('the process lives', service.isAlive());
      for (const client of held) client.abort();
      const begun = performance.now();
      const caller = service.caller();
      await until('it serves', async () => (await caller.read('?limit=1')).status === 200);
      recovered((performance.now() - begun) / 1000);
      caller.close();
    }
  },
};
