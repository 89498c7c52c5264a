import { EXIT, Failure } from '../failure.ts';
import type { ColumnMap, Columns } from './columns.ts';
import { readCsv } from './csv.ts';
import { decode, findMark } from './decode.ts';
import type { Entry } from './entry.ts';
import { detectFormat, type Format } from './format.ts';
import { readJson } from './json.ts';
import { readJsonLines } from './lines.ts';
import type { ReadText } from './scanner.ts';
import { type Source, withBegin } from './source.ts';

/** How a file is read. Without a format or an encoding, the content decides. */
export type FileOptions = {
  readonly format: Format | undefined;
  readonly encoding: string | undefined;
  readonly columns: Columns;
};

/** For which command a file is read, and the member that a file of CSV must have. */
export type Use = { readonly command: 'import' | 'diff' | 'sync'; readonly member?: string | undefined };

/** Users of JSON that decide whether a column is missing. */
const MAX_USERS = 100;

/**
 * The users of a file, in parts. An entry that is not a user has a problem.
 *
 * @throws {Failure} with exit code 1 for a file that is damaged or incomplete, after the users before the fault; with exit
 * code 2 for a file of another shape
 */
export async function* readUsers(
  source: Source,
  options: FileOptions,
  map: ColumnMap,
  { command, member }: Use,
  signal: AbortSignal,
): AsyncGenerator<readonly Entry[], void> {
  const { file } = source;
  let { format } = options;
  let encoding = new TextDecoder(options.encoding).encoding;
  const decide = (begin: Buffer, isWhole: boolean) => {
    encoding = findMark(begin) ?? encoding;
    const text = new TextDecoder(encoding).decode(begin, { stream: true });
    format ??= detectFormat(text, isWhole);
    return text;
  };
  const parts = withBegin(source.read(signal), (begin) => {
    const text = decide(begin, false);
    // The first lines of CSV decide the delimiter.
    return (options.format === 'csv' ? detectFormat(text, false) : format) !== undefined;
  });
  const { value: begin = Buffer.alloc(0) } = await parts.next();
  const text = decide(begin, true);
  if (format !== 'ndjson') refuseBegin(file, text);
  const whole = (async function* () {
    yield begin;
    yield* parts;
  })();
  const read: ReadText = (readLine) => decode(whole, encoding, file, readLine);
  // A line of JSON is sent as it is.
  const isRaw = command === 'import' && format === 'ndjson' && map.isPlain;
  const entries =
    format === 'csv'
      ? readCsv(read, text, map, { file, member, isEndNeeded: command === 'sync' })
      : format === 'json'
        ? readJson(read, map)
        : readJsonLines(encoding === 'utf-8' ? whole : toUtf8(read), isRaw ? undefined : map);

  const isStateNeeded = command === 'sync' || (command === 'import' && format !== 'ndjson');
  let held: Entry[] = [];
  let users = 0;
  const refuseFault = () => {
    const fault = map.findFault(isStateNeeded);
    if (fault && users > 0) throw new Failure(`${file}: ${fault}`, EXIT.wrongUse);
  };
  for await (const some of entries) {
    held.push(...some);
    users += format === 'csv' ? MAX_USERS : some.length;
    if (users >= MAX_USERS) refuseFault();
    else if (map.findFault(isStateNeeded)) continue;
    yield held;
    held = [];
  }
  refuseFault();
  yield held;
}

/** @throws {Failure} for a file of which no format can be read */
function refuseBegin(file: string, text: string): void {
  const [first = ''] = text.split('\n', 1);
  if (text.startsWith('PK\x03\x04'))
    throw new Failure(`${file} is a ZIP archive or an Excel workbook. Save it as CSV.`, EXIT.wrongUse);
  if (first.includes('\0'))
    throw new Failure(
      `${file} has U+0000 in its first line. If it is UTF-16, add --encoding utf-16le (or utf-16be).`,
      EXIT.wrongUse,
    );
}

async function* toUtf8(read: ReadText) {
  let line = 1;
  for await (const text of read(() => line)) {
    line += text.split('\n').length - 1;
    yield Buffer.from(text);
  }
}
