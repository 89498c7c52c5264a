import { prepareValue } from 'pg/lib/utils.js';

/** The OIDs of PostgreSQL's types. */
const BOOLEAN = 16;
const TEXT = 25;

type Element = string | boolean | null | undefined;

/**
 * In the text of a list, a setting decides whether NULL is null or a text (`array_nulls`). A list with null is therefore
 * sent in binary, as texts or booleans. A list of nulls alone is null, and `unnest` fills it up. @throws {TypeError}
 */
export function encodeParameter(value: unknown): string | Buffer | null {
  if (!Array.isArray(value) || !value.some(isAbsent)) return prepareValue(value);
  return value.every(isAbsent) ? null : encodeList(value);
}

/** One dimension with nulls, its type, its length and its first index; then each element after its length. */
function encodeList(list: readonly Element[]): Buffer {
  const type = list.some((element) => typeof element === 'boolean') ? BOOLEAN : TEXT;
  const elements = list.flatMap((element) => {
    if (isAbsent(element)) return int32(-1);
    const bytes = typeof element === 'boolean' ? Buffer.of(Number(element)) : Buffer.from(element);
    return [int32(bytes.length), bytes];
  });
  return Buffer.concat([int32(1, 1, type, list.length, 1), ...elements]);
}

function int32(...numbers: readonly number[]): Buffer {
  const bytes = Buffer.alloc(4 * numbers.length);
  for (const [index, number] of numbers.entries()) bytes.writeInt32BE(number, 4 * index);
  return bytes;
}

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
