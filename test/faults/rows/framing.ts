import type { Random } from '../../lab/load/random.ts';
import { type Connection as RawClient, connectTo as rawClient, requestText } from '../../stage/connection.ts';
import { FRONT_PROXIES } from '../front-proxies.ts';
import type { Row } from '../run-row.ts';

/** What a request says of its length, one way or the other; `#` stands for the length of its body. */
const FRAMINGS = [
  ['Content-Length: #'],
  ['Content-Length: 0', 'Content-Length: #'],
  ['Content-Length: #', 'Content-Length: 0'],
  ['Content-Length: 0, #'],
  ['Content-Length: +#'],
  ['Content-Length: 0x10'],
  ['Content-Length: -1'],
  ['Content-Length : 0'],
  ['Content-Length: 0', 'Transfer-Encoding: chunked'],
  ['Transfer-Encoding: chunked', 'Content-Length: #'],
  ['Transfer-Encoding: chunked'],
  ['Transfer-Encoding: chunked', 'Transfer-Encoding: identity'],
  ['Transfer-Encoding: identity, chunked'],
  ['Transfer-Encoding: xchunked'],
  ['Transfer-Encoding : chunked'],
  ['Transfer-Encoding:\x0bchunked'],
  ['Transfer-Encoding: chunked\r\n ,x'],
  ['X: y\nTransfer-Encoding: chunked'],
  ['Connection: Content-Length', 'Content-Length: #'],
  ['Expect: 100-continue', 'Content-Length: #'],
  ['Upgrade: h2c', 'Connection: Upgrade', 'Content-Length: #'],
] as const;

const LINES = [
  'GET /health',
  'POST /api/v1/users/',
  'DELETE /api/v1/users/x',
  'OPTIONS /api/v1/users/',
  'GET /nowhere',
];
const ENDS = [
  '0\r\n\r\n',
  '0\n\n',
  '0\r\nX: y\r\n\r\n',
  '00000000000000000\r\n\r\n',
  '0;x=y\r\n\r\n',
  '-1\r\n\r\n',
  '',
];

/** Sends requests whose lengths can be read in two ways, with a create inside that was not sent. */
async function attack(url: string, n: number, random: Random, authorization: string): Promise<RawClient> {
  const smuggled = JSON.stringify({ email: `smuggled-${n}@example.com` });
  const inner = requestText('POST /api/v1/users/', { Authorization: authorization }, smuggled);
  const body = random.pick([
    random.pick(ENDS) + inner,
    `${inner.length.toString(16)}\r\n${inner}\r\n0\r\n\r\n`,
    `${inner.length.toString(16)};${random.pick(['a', '\n', '\r', ' '])}\r\n${inner}\r\n0\r\n\r\n`,
    inner,
  ]);
  const framing = random.pick(FRAMINGS).map((field) => field.replace('#', String(body.length)));
  const fields = { 'Content-Type': 'application/json', Connection: 'close' };
  const head = requestText(random.pick(LINES), fields).replace(/\r\n$/, `${framing.join('\r\n')}\r\n\r\n`);
  const client = await rawClient(url);
  client.send(head + body);
  await client.untilOver(1500);
  client.abort();
  return client;
}

export const framing: Row = {
  name: 'framing',
  promise:
    'Requests whose length can be read in two ways, directly and behind haproxy, strict and lenient, and nginx, buffered and not: one response at most, and none executed that was not sent.',
  trials: 12_000,
  brief: 800,
  async run({ startService, trials, claim, random, token, postgres, trySideBySide }) {
    const service = await startService();
    const authorization = `Bearer ${await token()}`;
    const { host } = new URL(service.url);
    for (const [name, start] of [['directly', undefined] as const, ...Object.entries(FRONT_PROXIES)]) {
      const proxy = await start?.(host);
      const attempt = async (n: number) => {
        const client = await attack(proxy?.url ?? service.url, n, random, authorization);
        const statuses = client.statuses();
        claim(`${name}: there is one response at most`, statuses.length <= 1, client.received);
        const isRight = proxy !== undefined || statuses.every((status) => status < 500);
        claim(`${name}: none is a 5xx`, isRight, client.received);
      };
      const share = proxy ? 1 / 12 : 8 / 12;
      await trySideBySide(40, attempt, Math.ceil(trials * share));
      await proxy?.stop();
      const [row] = await postgres.query("SELECT count(*)::int FROM users WHERE email LIKE 'smuggled%'");
      claim(`${name}: nothing was smuggled`, row?.count === 0, row);
    }
  },
};
