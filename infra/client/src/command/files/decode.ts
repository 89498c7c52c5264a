import { Failure } from '../failure.ts';

/** The encoding that a byte order mark names; undefined without one. */
export function findMark(begin: Buffer): string | undefined {
  const marks = { efbbbf: 'utf-8', fffe: 'utf-16le', feff: 'utf-16be' };
  const first = begin.toString('hex', 0, 3);
  return Object.entries(marks).find(([mark]) => first.startsWith(mark))?.[1];
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
  // The strict decoder does not say where a fault is. The other one writes U+FFFD there.
  const [strict, lenient] = [new TextDecoder(encoding, { fatal: true }), new TextDecoder(encoding)];
  const isRight = (part?: Buffer) => {
    try {
      return strict.decode(part, { stream: part !== undefined }) !== undefined;
    } catch {
      return false;
    }
  };
  let isWhole = true;
  for await (const part of parts) {
    const text = lenient.decode(part, { stream: true });
    isWhole = isRight(part);
    yield isWhole ? text : text.slice(0, text.indexOf('\ufffd'));
    if (!isWhole) break;
  }
  if (isWhole && isRight()) return;
  throw new Failure(
    `${file}, line ${readLine()}: bytes that are not ${encoding}. If the file has another encoding, name it: ` +
      '--encoding windows-1252',
  );
}
