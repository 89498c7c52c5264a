/** A line of a file, without its end, and its number, from 1. `bytes` is undefined if the line is too long. */
export type Line = { readonly number: number; readonly bytes: Buffer | undefined };

const LINE_FEED = 10;

/** The lines of a file, as they arrive. A line of more than `maxBytes` bytes is not kept in memory. */
export async function* readLines(
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
