import { PassThrough } from 'node:stream';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { type Row, type RowReceiver, readRow, takeRows } from '../../lib/postgres/sessions/rows.ts';

/** The messages of PostgreSQL, and the part that the listener of a connection receives, one after another. */
type Heard = { readonly row: Row } | { readonly other: string };

const columns = ['id', 'first', 'second', 'number'].map((name) => ({ name, read: (text: string) => text }));

/** Rows come after it only. */
const READY_FOR_QUERY = Buffer.from('Z\0\0\0\x05I');

const anyText = fc.oneof(
  fc.string(),
  fc.string({ unit: 'binary' }).filter((text) => text.isWellFormed()),
  fc.string({ unit: 'grapheme', minLength: 100, maxLength: 300 }),
);
const anyRow = fc.record({
  id: fc.uuid(),
  first: fc.option(anyText),
  second: fc.option(anyText),
  number: fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n).map(String),
});
const anyHeard: fc.Arbitrary<Heard> = fc.oneof(
  fc.record({ row: anyRow }),
  fc.record({ other: fc.stringMatching(/^[A-Z0-9 ]+$/) }),
);

test('rows are read and all other messages passed on in order, with any splits of the bytes', () => {
  void fc.assert(
    fc.property(
      fc.array(anyHeard, { maxLength: 20 }),
      fc.array(fc.nat(400), { minLength: 1, maxLength: 30 }),
      (sent, cuts) => {
        expect(heardOf(cut(Buffer.concat(sent.map(messageOf)), cuts))).toEqual(sent);
      },
    ),
    { numRuns: 1000 },
  );
});

function heardOf(pieces: readonly Buffer[]): readonly Heard[] {
  const stream = new PassThrough();
  const heard: Heard[] = [];
  stream.on('data', (bytes: Buffer) => {
    for (let at = 0; at < bytes.length; at += 1 + bytes.readUInt32BE(at + 1))
      heard.push({ other: bytes.toString('utf8', at + 5, at + bytes.readUInt32BE(at + 1)) });
  });
  const receiver: RowReceiver = {
    takeRow(received, at) {
      heard.push({ row: readRow(columns, received, at) });
    },
  };
  takeRows(stream, {
    onBytes() {},
    receiver,
    abandon(reason) {
      throw reason;
    },
  });
  stream.emit('data', READY_FOR_QUERY);
  heard.pop();
  for (const piece of pieces) stream.emit('data', piece);
  return heard;
}

function messageOf(sent: Heard): Buffer {
  if ('other' in sent) return message('C', Buffer.from(`${sent.other}\0`));
  const { id, first, second, number } = sent.row;
  return message('D', Buffer.concat([int16(4), ...[id, first, second, number].map(fieldOf)]));
}

function fieldOf(value: unknown): Buffer {
  if (value === null) return int32(-1);
  const bytes = Buffer.from(String(value));
  return Buffer.concat([int32(bytes.length), bytes]);
}

function message(code: string, content: Buffer): Buffer {
  return Buffer.concat([Buffer.from(code), int32(4 + content.length), content]);
}

/** Repeated pieces of these lengths. */
function cut(bytes: Buffer, lengths: readonly number[]): readonly Buffer[] {
  const pieces: Buffer[] = [];
  for (let [begin, turn] = [0, 0]; begin < bytes.length; turn += 1) {
    const end = begin + 1 + (lengths[turn % lengths.length] ?? 0);
    pieces.push(bytes.subarray(begin, end));
    begin = end;
  }
  return pieces;
}

function int16(number: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeInt16BE(number);
  return bytes;
}

function int32(number: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeInt32BE(number);
  return bytes;
}
