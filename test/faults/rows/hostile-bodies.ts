import type { Random } from '../../lab/load/random.ts';
import { rawClient } from '../../stage/raw-client.ts';
import type { Row } from '../run-row.ts';

const deep = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`;

/** Bodies of a create that has this address, and whether they may be accepted. */
const BODIES: readonly ((address: string, random: Random) => { text: string | Buffer; mayPass?: boolean })[] =
  [
    (address) => ({ text: `{"email":"${address}"` }),
    (address) => ({ text: `{"email":"${address}",}` }),
    (address) => ({ text: `{'email':'${address}'}` }),
    (address) => ({ text: `\ufeff{"email":"${address}"}` }),
    (address) => ({
      text: Buffer.concat([Buffer.from(`{"email":"${address}","x":"`), Buffer.of(0xff), Buffer.from('"}')]),
    }),
    (address) => ({ text: Buffer.from(`{"email":"${address}"}`, 'utf16le') }),
    (_, random) => ({
      text: random.pick(['', ' ', '[]', 'null', '1', '"x"', 'true', '[{}]', '{}', '{"email":null}']),
    }),
    (_, random) => ({ text: deep(random.below(5000)) }),
    (address, random) => ({ text: `{"email":"${address}","x":${deep(random.below(2000))}}`, mayPass: true }),
    (address, random) => ({ text: `{"email":"${address}","x":${'['.repeat(random.below(20_000))}` }),
    (address, random) => ({
      text: `{${Array.from({ length: random.below(3000) }, (_, n) => `"m${n}":${n},`).join('')}"email":"${address}"}`,
      mayPass: true,
    }),
    (address) => ({ text: `{"email":"none","email":"${address}"}`, mayPass: true }),
    (address) => ({ text: `{"email":"${address}","__proto__":{"full_name":"Eve"}}`, mayPass: true }),
    (address) => ({
      text: `{"email":"${address}","constructor":{"prototype":{"is_active":false}}}`,
      mayPass: true,
    }),
    (address) => ({ text: `{"email":"${address}","full_name":"a\\u0000b"}` }),
    (address) => ({ text: `{"email":"${address}","full_name":"a\\ud800b"}` }),
    (address) => ({ text: `{"email":"${address}","full_name":${'9'.repeat(400)}}` }),
    (address) => ({ text: `{"email":"${address}","x":1e999,"y":-0,"z":1E-400}`, mayPass: true }),
    (address) => ({ text: `{"email":"${address}","full_name":"${'x'.repeat(70_000)}"}` }),
  ];

export const hostileBodies: Row = {
  name: 'hostile-bodies',
  promise:
    'Hostile bodies, with true, lying and no lengths: 4xx, never 5xx; what is accepted reads back as it was sent.',
  trials: 10_000,
  brief: 1000,
  async run({ startService, claim, random, token, postgres, trySideBySide }) {
    const service = await startService();
    const authorization = `Bearer ${await token()}`;
    const accepted: string[] = [];
    await trySideBySide(20, async (n) => {
      const address = `hostile-${n}@example.com`;
      const { text, mayPass = false } = random.pick(BODIES)(address, random);
      const bytes = Buffer.from(text);
      const lie = random.below(10);
      const length = lie === 0 ? bytes.length + 5 : lie === 1 ? Math.max(0, bytes.length - 1) : bytes.length;
      const isChunked = lie === 2;
      const framing = isChunked ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`;
      const type = random.pick([
        'application/json',
        'application/json; charset=utf-8',
        'application/x+json',
        'text/json',
      ]);
      const client = await rawClient(service.url);
      client.send(
        `POST /api/v1/users/ HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorization}\r\nConnection: close\r\n` +
          `Content-Type: ${type}\r\n${framing}\r\n\r\n`,
      );
      client.send(
        isChunked
          ? Buffer.concat([
              Buffer.from(`${bytes.length.toString(16)}\r\n`),
              bytes,
              Buffer.from('\r\n0\r\n\r\n'),
            ])
          : bytes,
      );
      // One that has promised more than it sends says that this was all.
      if (lie === 0) client.halfClose();
      await client.untilOver(15_000);
      const [status] = client.statuses();
      client.abort();
      const isRight =
        status === 201 ? mayPass && type !== 'text/json' : [400, 413, 415, 422].includes(status ?? 0);
      claim('it is refused as it should be', isRight, {
        status,
        type,
        length,
        text: String(text).slice(0, 100),
      });
      if (status === 201) accepted.push(address);
    });
    const rows = await postgres.query('SELECT email, full_name, is_active FROM users');
    const stored = new Set(rows.map(({ email }) => email));
    claim(
      'what was accepted is there, and nothing else',
      accepted.every((address) => stored.has(address)) && stored.size === accepted.length,
      {
        accepted: accepted.length,
        stored: stored.size,
      },
    );
    const odd = rows.filter(({ full_name, is_active }) => full_name !== null || is_active !== true);
    claim('no member came in by a trick', odd.length === 0, odd[0]);
  },
};
