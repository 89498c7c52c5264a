import { setTimeout as sleep } from 'node:timers/promises';
import { readSteadily } from '../../lab/load/load.ts';
import { type Connection as RawClient, connectTo as rawClient, requestText } from '../../stage/connection.ts';
import type { Row } from '../run-row.ts';

const LIST = 'GET /api/v1/users/?limit=1000';

/** More than any kernel takes in before the reader has read: so many lists of a thousand users. */
const LISTS_PER_READER = 40;

/** On a slow machine the others wait in proportion to what they wait without slow clients: 5 ms on a quick one. */
const MAX_P99_MS = 50;
const MAX_P99_RATIO = 10;

/** In seconds: how long a slow client may last. */
const LIMIT_S = 12;

type Kind = 'headers' | 'body' | 'reading';

export const SLOW: Readonly<Record<Kind, (url: string, authorization: string) => Promise<RawClient>>> = {
  async headers(url) {
    const client = await rawClient(url);
    client.send('GET /health HTTP/1.1\r\nHost: a\r\nX-Drip: ');
    drip(client);
    return client;
  },
  async body(url, Authorization) {
    const client = await rawClient(url);
    const fields = { Authorization, 'Content-Type': 'application/json', 'Content-Length': '5000' };
    client.send(requestText('POST /api/v1/users/', fields));
    drip(client);
    return client;
  },
  async reading(url, Authorization) {
    const client = await rawClient(url, { isReading: false });
    client.send(requestText(LIST, { Authorization }).repeat(LISTS_PER_READER));
    return client;
  },
};

/** One of so many reads slowly, since each of those costs the service whole lists. */
const CLIENTS_PER_READER = 21;

/** Of 1,400: 667 headers, 667 bodies, 66 that read slowly. */
function kindOf(n: number): Kind {
  const place = n % CLIENTS_PER_READER;
  if (place === CLIENTS_PER_READER - 1) return 'reading';
  return place % 2 === 0 ? 'headers' : 'body';
}

function drip(client: RawClient): void {
  const timer = setInterval(() => {
    if (client.isOver) clearInterval(timer);
    else client.send('x');
  }, 1000);
}

export const slowClients: Row = {
  name: 'slow-clients',
  promise:
    '1,400 clients are slow with headers (667), bodies (667) or reading (66): gone in 12 seconds, for 60 MB at most; 99.9 % of the other requests succeed, with a p99 within 50 ms, on a slow machine of ten times the calm one.',
  trials: 1400,
  async run({ startService, tries, trials, claim, token, postgres, figures, defer }) {
    const service = await startService({}, { isOnItsOwn: true });
    // A thousand users with long names and addresses.
    await postgres.query(
      `INSERT INTO users (id, email, full_name)
       SELECT gen_random_uuid(), n || repeat('x', 200) || '@b', repeat('y', 250) FROM generate_series(1, 1000) AS n`,
    );
    const authorization = `Bearer ${await token()}`;
    const calm = await readSteadily(service, { seconds: 5, restMs: 10 });
    // What V8 keeps for making lists is not a cost of clients that do not read them. So as many callers as there will be
    // slow readers read lists, until that costs no further memory.
    const readers = Math.ceil(trials / CLIENTS_PER_READER);
    const callers = service.caller(readers);
    let before: number;
    do {
      before = service.memoryGrowth();
      await Promise.all(Array.from({ length: readers * 10 }, () => callers.read('?limit=1000')));
    } while (service.memoryGrowth() > before + 3);
    callers.close();
    const clients: { readonly kind: Kind; readonly client: RawClient }[] = [];
    defer(() => clients.forEach(({ client }) => void client.abort()));
    for (const n of tries()) {
      const kind = kindOf(n);
      // One after the other, so that the lists of those who read slowly do not come all at once.
      clients.push({ kind, client: await SLOW[kind](service.url, authorization) });
    }
    const begun = performance.now();
    const busy = await readSteadily(service, { seconds: LIMIT_S, restMs: 10 });
    figures.memoryChange = service.memoryGrowth() - before;
    claim('they cost 60 MB at most', figures.memoryChange <= 60, figures.memoryChange);
    await sleep(Math.max(0, LIMIT_S * 1000 + 1500 - (performance.now() - begun)));
    // A client that does not read sees the end of its connection only when it reads.
    for (const { client } of clients) client.socket.resume();
    await sleep(2000);
    for (const kind of Object.keys(SLOW)) {
      const left = clients.filter((one) => one.kind === kind && !one.client.isOver).length;
      claim(`the clients slow with ${kind} are gone`, left === 0, left);
    }
    claim('at least 99.9 % of the normal requests succeed', busy.ok >= busy.sent * 0.999, busy);
    const limit = Math.max(MAX_P99_RATIO * calm.p99, MAX_P99_MS);
    claim('p99 is within 50 ms, or ten times the calm one', busy.p99 <= limit, { calm, busy });
    const healthy = await fetch(`${service.url}/health`);
    claim('the process lives', healthy.ok);
  },
};
