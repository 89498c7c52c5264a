import { isUtf8 } from 'node:buffer';
import type { ColumnMap } from './columns.ts';
import { createEntry, type Entry, invalid, parseJson, TOO_LONG } from './entry.ts';
import { MAX_BYTES } from './scanner.ts';

/** A line of a file, without its end, and its number, from 1. `bytes` is undefined if the line is too long. */
type Line = { readonly number: number; readonly bytes: Buffer | undefined };

const LINE_FEED = 10;

/** The lines of a file, as they arrive. A line of more than `maxBytes` bytes is not kept in memory. */
async function* readLines(
  chunks: AsyncIterable<Buffer>,
  maxBytes: number,
): AsyncGenerator<readonly Line[], void> {
  let number = 0;
  let begun: Buffer[] = [];
  let length = 0;

  function endLine(rest: Buffer): Line {
    const isTooLong = length + rest.length > maxBytes;
    const bytes = begun.length === 0 ? rest : Buffer.concat([...begun, rest]);
    begun = [];
    length = 0;
    number += 1;
    return { number, bytes: isTooLong ? undefined : bytes };
  }

  for await (const chunk of chunks) {
    const lines: Line[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      lines.push(endLine(chunk.subarray(start, end)));
      start = end + 1;
    }
    if (start < chunk.length) {
      length += chunk.length - start;
      if (length > maxBytes) begun = [];
      else begun.push(chunk.subarray(start));
    }
    yield lines;
  }
  if (length > 0) yield [endLine(Buffer.alloc(0))];
}

/** The users of lines of JSON. Without a map, each has the members of its line. */
export async function* readJsonLines(
  chunks: AsyncIterable<Buffer>,
  map?: ColumnMap,
): AsyncGenerator<readonly Entry[], void> {
  for await (const lines of readLines(chunks, MAX_BYTES))
    yield lines.map((line) => parseLine(line, map)).filter((entry) => entry !== undefined);
}

/** The user of a line, or why it cannot be one; undefined for an empty line. */
function parseLine({ number: line, bytes }: Line, map?: ColumnMap): Entry | undefined {
  const place = { line, position: line };
  if (bytes === undefined) return { ...place, problem: TOO_LONG };
  if (!isUtf8(bytes)) return { ...place, problem: invalid('must be UTF-8') };
  const text = bytes.toString();
  if (text.trim() === '') return undefined;
  const read = (object: object) => map?.readObject(object, line) ?? object;
  return createEntry(place, { text, value: parseJson(text) }, read, map ? undefined : bytes);
}
