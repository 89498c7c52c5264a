import { sql } from 'kysely';
import { beforeAll, expect, inject, onTestFinished, test } from 'vitest';
import { openedDatabase } from '../stage/opened-database.ts';
import { messageOf, messagesThrough, READY_FOR_QUERY } from '../stage/postgres-messages.ts';
import { addressOf, startProxy } from '../stage/proxy.ts';
import { prepare } from '../stage/statements.ts';

const database = openedDatabase('SELECT');
let proxy: Awaited<ReturnType<typeof startProxy>>;

beforeAll(async () => {
  proxy = await startProxy(inject('postgres'));
  return () => proxy.stop();
});

/** Messages that PostgreSQL or a pooler can send at any time. */
const NOTICE = messageOf('N', 'SWARNING\0VWARNING\0C01000\0Mchecked\0\0');
const PARAMETER_STATUS = messageOf('S', 'application_name\0user-management-service\0');

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
    const opened = database.open({ ...addressOf(proxy), SVC_POSTGRES_STATEMENT_TIMEOUT: '1' });
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
