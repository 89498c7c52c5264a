import { sql } from 'kysely';
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { openDatabase } from '../../lib/postgres/database.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { createDatabase } from '../stage/postgres.ts';
import { messagesThrough, READY_FOR_QUERY } from '../stage/postgres-messages.ts';
import { startProxy } from '../stage/proxy.ts';
import { environmentOf } from '../stage/service.ts';
import { prepare } from '../stage/statements.ts';
import { startIssuer } from '../stage/tokens.ts';

let database: Awaited<ReturnType<typeof createDatabase>>;
let issuer: Awaited<ReturnType<typeof startIssuer>>;
let proxy: Awaited<ReturnType<typeof startProxy>>;

beforeAll(async () => {
  [database, issuer, proxy] = await Promise.all([
    createDatabase(),
    startIssuer(),
    startProxy(inject('postgres')),
  ]);
});

afterAll(async () => {
  await Promise.all([issuer.stop(), proxy.stop()]);
  await database.drop();
});

/** Messages that PostgreSQL or a pooler can send at any time. */
const NOTICE = message('N', 'SWARNING\0VWARNING\0C01000\0Mchecked\0\0');
const PARAMETER_STATUS = message('S', 'application_name\0user-management-service\0');

function message(type: string, content: string): Buffer {
  const bytes = Buffer.from(`${type}\0\0\0\0${content}`);
  bytes.writeInt32BE(bytes.length - 1, 1);
  return bytes;
}

const cases = Object.entries({ NOTICE, PARAMETER_STATUS }).flatMap(([name, split]) =>
  [0, 1, 3, 5, 20, split.length].map((length) => ({ name, split, length })),
);

test.each(cases)(
  'a session can begin with $length bytes of a message, and the others follow: $name',
  async ({ split, length }) => {
    await proxy.pass();
    proxy.answersThrough(() => {
      let rest: Buffer | undefined;
      return messagesThrough((type, message) => {
        if (rest) {
          const passed = Buffer.concat([rest, message]);
          rest = Buffer.alloc(0);
          return passed;
        }
        if (type !== READY_FOR_QUERY) return message;
        rest = split.subarray(length);
        return Buffer.concat([message, split.subarray(0, length)]);
      });
    });
    const { postgres } = readSettings({
      ...environmentOf({ ...database, host: proxy.host, port: proxy.port }, issuer),
      SVC_POSTGRES_STATEMENT_TIMEOUT: '1',
    });
    const opened = openDatabase(postgres);
    onTestFinished(() => opened.close(1));
    const count = prepare<{ most: number }, { number: number }>(
      opened.statements,
      'SELECT numbers',
      ({ most }) => sql`select number from generate_series(1, ${most}::int) as number`,
      'list',
    );

    expect(await count({ most: 3 })).toEqual([{ number: 1 }, { number: 2 }, { number: 3 }]);
    expect(await count({ most: 1 })).toEqual([{ number: 1 }]);
  },
);
