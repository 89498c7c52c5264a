import { isUtf8 } from 'node:buffer';
import { parseJson } from '../../response-content.ts';
import type { ColumnMap } from './columns.ts';
import { createEntry, type Entry, invalid, TOO_LONG } from './entry.ts';
import { MAX_BYTES } from './scanner.ts';

const LINE_FEED = 10;

/** The users of lines of JSON, as they arrive. Without a map, each has the members of its line. */
export async function* readJsonLines(
  chunks: AsyncIterable<Buffer>,
  map?: ColumnMap,
): AsyncGenerator<readonly Entry[], void> {
  let line = 0;
  /** The beginning of a line that goes on in the next chunk. The bytes of a line that is too long are not kept. */
  let begun: Buffer[] = [];
  let length = 0;

  function endLine(rest: Buffer): Entry | undefined {
    line += 1;
    const isTooLong = length + rest.length > MAX_BYTES;
    const bytes = begun.length === 0 ? rest : Buffer.concat([...begun, rest]);
    begun = [];
    length = 0;
    return isTooLong ? { line, position: line, problem: TOO_LONG } : parseLine(line, bytes, map);
  }

  for await (const chunk of chunks) {
    const entries: (Entry | undefined)[] = [];
    let start = 0;
    for (let end = chunk.indexOf(LINE_FEED); end !== -1; end = chunk.indexOf(LINE_FEED, start)) {
      entries.push(endLine(chunk.subarray(start, end)));
      start = end + 1;
    }
    length += chunk.length - start;
    if (length > MAX_BYTES) begun = [];
    else if (start < chunk.length) begun.push(chunk.subarray(start));
    yield entries.filter((entry) => entry !== undefined);
  }
  const last = length > 0 ? endLine(Buffer.alloc(0)) : undefined;
  if (last) yield [last];
}

/** The user of a line, or why it cannot be one; undefined for an empty line. */
function parseLine(line: number, bytes: Buffer, map?: ColumnMap): Entry | undefined {
  const place = { line, position: line };
  if (!isUtf8(bytes)) return { ...place, problem: invalid('must be UTF-8') };
  const text = bytes.toString();
  if (text.trim() === '') return undefined;
  const read = (object: object) => map?.readObject(object, line) ?? object;
  // A file may begin with a byte order mark.
  const value = parseJson(text.replace(/^\ufeff/, ''));
  return createEntry(place, { text, value }, read, map ? undefined : bytes);
}
