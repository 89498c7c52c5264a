import type { ReceivedRow } from '../../lib/postgres/wire/rows.ts';
import type { User } from '../../lib/users/user.ts';

/** The rows of a page as PostgreSQL sends them in binary, behind so many bytes that came before. */
export function rowsOf(users: readonly User[], before = 0): readonly ReceivedRow[] {
  const rows = users.map(({ id, email, full_name, is_active, created_at, updated_at }) =>
    Buffer.concat([
      field(Buffer.from(id.replaceAll('-', ''), 'hex')),
      field(Buffer.from(email)),
      full_name === null ? int32(-1) : field(Buffer.from(full_name)),
      field(Buffer.from([Number(is_active)])),
      field(timestamp(created_at)),
      field(timestamp(updated_at)),
    ]),
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
