import { Failure } from '../failure.ts';

/** The encoding that a byte order mark names; undefined without one. */
export function findMark(begin: Buffer): string | undefined {
  const marks = { efbbbf: 'utf-8', fffe: 'utf-16le', feff: 'utf-16be' };
  const [, encoding] =
    Object.entries(marks).find(([mark]) => begin.toString('hex', 0, 3).startsWith(mark)) ?? [];
  return encoding;
}

/**
 * The text of a file. It always streams: Node.js 20 decodes windows-1252 wrongly otherwise.
 *
 * @throws {Failure} with the line, after the text before the first bytes that are not of the encoding
 */
export async function* decode(
  parts: AsyncIterable<Buffer>,
  encoding: string,
  file: string,
  readLine: () => number,
): AsyncGenerator<string, void> {
  const [decoder, follower] = [0, 1].map(() => new TextDecoder(encoding, { fatal: true })) as [
    TextDecoder,
    TextDecoder,
  ];
  const fail = () =>
    new Failure(
      `${file}, line ${readLine()}: bytes that are not ${encoding}. If the file has another encoding, name it: ` +
        '--encoding windows-1252',
    );
  for await (const part of parts) {
    let text = '';
    try {
      text = decoder.decode(part, { stream: true });
      follower.decode(part, { stream: true });
    } catch {
      // The decoder does not say where. The other one has its state from before this part.
      try {
        for (const byte of part) text += follower.decode(Buffer.of(byte), { stream: true });
      } catch {}
      yield text;
      throw fail();
    }
    yield text;
  }
  try {
    yield decoder.decode();
  } catch {
    throw fail();
  }
}
