import type { ListRow } from '../../lib/postgres/index.ts';
import { type Field, fields } from '../../lib/users/fields.ts';
import type { AnyUser } from './any-user.ts';

const BYTES: Readonly<Record<Field['sqlType'], (value: never) => Buffer>> = {
  uuid: (id: string) => Buffer.from(id.replaceAll('-', ''), 'hex'),
  text: (text: string) => Buffer.from(text),
  boolean: (isSo: boolean) => Buffer.from([Number(isSo)]),
  timestamptz: timestamp,
};

/** The rows of a page as PostgreSQL sends them in binary, after this many other bytes. */
export function rowsOf(users: readonly AnyUser[], before = 0): readonly ListRow[] {
  const rows = users.map((user) =>
    Buffer.concat(
      fields.map(({ name, sqlType }) =>
        user[name] === null ? int32(-1) : field(BYTES[sqlType](user[name] as never)),
      ),
    ),
  );
  const bytes = Buffer.concat([Buffer.alloc(before), ...rows]);
  let at = before;
  return rows.map(({ length }) => {
    at += length;
    return { bytes, at: at - length };
  });
}

function field(bytes: Buffer): Buffer {
  return Buffer.concat([int32(bytes.length), bytes]);
}

/** Microseconds since 2000. */
function timestamp(milliseconds: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigInt64BE((BigInt(milliseconds) - BigInt(Date.UTC(2000, 0))) * 1000n);
  return bytes;
}

function int32(number: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(number);
  return bytes;
}
