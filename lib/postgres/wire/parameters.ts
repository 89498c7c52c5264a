import { prepareValue } from 'pg/lib/utils.js';

/** The OID of PostgreSQL's type text. */
const TEXT = 25;

/**
 * A value as a parameter. In the text of a list, a setting decides whether NULL is null or a text (`array_nulls`). A list
 * with null is therefore sent in binary, as texts. A list of nulls alone is null, and `unnest` fills it up.
 */
export function encodeParameter(value: unknown): string | Buffer | null {
  if (!Array.isArray(value) || !value.some(isAbsent)) return prepareValue(value);
  return value.every(isAbsent) ? null : encodeTexts(value);
}

/** One dimension with nulls, its type, its length and its first index; then each element after its length. */
function encodeTexts(texts: readonly (string | null | undefined)[]): Buffer {
  const elements = texts.flatMap((text) =>
    isAbsent(text) ? int32(-1) : [...int32(Buffer.byteLength(text)), Buffer.from(text)],
  );
  return Buffer.concat([...int32(1, 1, TEXT, texts.length, 1), ...elements]);
}

function int32(...numbers: readonly number[]): readonly Buffer[] {
  return numbers.map((number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeInt32BE(number);
    return bytes;
  });
}

function isAbsent(value: unknown): value is null | undefined {
  return value === null || value === undefined;
}
