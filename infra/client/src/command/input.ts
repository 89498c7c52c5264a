import { createReadStream, fstatSync, openSync, ReadStream, type Stats } from 'node:fs';
import type { Readable } from 'node:stream';
import { EXIT, Failure, reasonOf } from './failure.ts';

/** A file, and the share of it that has been read; undefined for a pipe. */
export type Input = { readonly stream: Readable; readonly stats: Stats; share(): number | undefined };

/** In bytes: how much is read at a time. */
const CHUNK = 65_536;

/** Opens a file, or standard input for `-`. */
export function openInput(file: string): Input {
  try {
    const descriptor = file === '-' ? process.stdin.fd : openSync(file, 'r');
    const stats = fstatSync(descriptor);
    if (stats.isDirectory()) throw new Failure('it is a directory');
    const stream =
      file === '-' ? process.stdin : createReadStream(file, { fd: descriptor, highWaterMark: CHUNK });
    if (stats.isFile() && stream instanceof ReadStream)
      return { stream, stats, share: () => Math.min(stream.bytesRead / Math.max(stats.size, 1), 1) };
    return { stream, stats, share: () => undefined };
  } catch (error) {
    throw new Failure(`${file} cannot be read: ${reasonOf(error)}`, EXIT.wrongUse);
  }
}

/**
 * The chunks of a file of JSON lines.
 *
 * @throws {Failure} with the command that converts the file, if it begins like a file of another shape
 */
export async function acceptLines(input: Readable, file: string): Promise<AsyncIterable<Buffer>> {
  const chunks: AsyncIterator<Buffer> = input[Symbol.asyncIterator]();
  let begin = Buffer.alloc(0);
  let next = await chunks.next();
  for (; !next.done && begin.length < CHUNK && !begin.includes('\n'); next = await chunks.next())
    begin = Buffer.concat([begin, next.value]);
  const convert = findShape(begin);
  if (convert) {
    const [shape, command] = convert;
    const words = `${command}${file === '-' ? '' : ` ${quote(file)}`} > users.ndjson`;
    throw new Failure(
      `${file} is ${shape}, and not one JSON object per line. Convert it: ${words}`,
      EXIT.wrongUse,
    );
  }
  return (async function* () {
    yield begin;
    for (; !next.done; next = await chunks.next()) yield next.value;
  })();
}

const FROM_CSV =
  `python3 -c 'import csv,json,fileinput; [print(json.dumps({k: v == "true" if k == "is_active" else v for k, v in row.items() if v})) ` +
  `for row in csv.DictReader(fileinput.input(encoding="utf-8-sig"), delimiter="DELIMITER")]'`;

/** The shape of a file that has no JSON lines, and the command that converts it; undefined for JSON lines. */
function findShape(begin: Buffer): readonly [string, string] | undefined {
  const [one, two] = begin;
  if (one === 0x1f && two === 0x8b) return ['gzip', 'gunzip -c'];
  const isMarked = (one === 0xff && two === 0xfe) || (one === 0xfe && two === 0xff);
  if (isMarked) return ['UTF-16', 'iconv -f UTF-16 -t UTF-8'];
  if (begin.length > 1 && (one === 0 || two === 0))
    return ['UTF-16', `iconv -f UTF-16${one === 0 ? 'BE' : 'LE'} -t UTF-8`];
  const text = begin
    .toString()
    .replace(/^\ufeff/, '')
    .trimStart();
  const line = text.split('\n', 1)[0]?.trim() ?? '';
  if (text.startsWith('[')) return ['a JSON array', `jq -c '.[]'`];
  if (line === '{') return ['JSON of several lines', 'jq -c .'];
  const delimiter = [',', ';', '\t'].find((character) => line.includes(character));
  if (!IS_CSV_LINE.test(line) || !(delimiter || /^"?e-?mail"?$/i.test(line))) return undefined;
  return ['CSV', FROM_CSV.replace('DELIMITER', delimiter === '\t' ? '\\t' : (delimiter ?? ','))];
}

/** Names of columns, or a first line of values. */
const IS_CSV_LINE = /^[\p{L}\p{N}@_ .+'",;\t-]+$/u;

function quote(file: string): string {
  return /^[\w./-]+$/.test(file) ? file : `'${file.replaceAll("'", `'\\''`)}'`;
}
