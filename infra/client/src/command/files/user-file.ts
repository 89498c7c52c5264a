import type { OptionsOf } from '../arguments.ts';
import { EXIT, Failure } from '../failure.ts';
import { ColumnMap } from './columns.ts';
import { CsvScanner } from './csv.ts';
import { decode, findMark } from './decode.ts';
import type { Entry } from './entry.ts';
import { detectFormat, type Format } from './format.ts';
import { JsonScanner } from './json.ts';
import { readJsonLines } from './lines.ts';
import type { ReadText } from './scanner.ts';
import { readBegin, Source } from './source.ts';

/** The command that reads a file, and the member that a file of CSV must have. Members that are not used are named. */
type FileUse = {
  readonly command: 'import' | 'diff' | 'sync';
  readonly signal: AbortSignal;
  readonly member: string | undefined;
  readonly used?: readonly string[];
};

/** Users of JSON that decide whether a column is missing. */
const MAX_USERS = 100;

/** A file of users. A regular one may be read several times. Without a format or an encoding in the options, its content decides. */
export class UserFile extends Source {
  readonly #options: OptionsOf<FileUse['command']>;
  readonly #use: FileUse;
  readonly #map: ColumnMap;

  constructor(options: OptionsOf<FileUse['command']>, use: FileUse) {
    super(options.operand);
    this.#options = options;
    this.#use = use;
    this.#map = new ColumnMap(options.columns, use.used);
    if (use.command !== 'import' && !this.stats.isFile())
      throw new Failure(`${this.file} must be a file, because it is read several times`, EXIT.wrongUse);
  }

  describeUnused(): string | undefined {
    return this.#map.describeUnused();
  }

  /**
   * The users, in parts. An entry that is not a user has a problem.
   *
   * @throws {Failure} with exit code 1 for a file that is damaged or incomplete, after the users before the fault; with exit
   * code 2 for a file of another shape
   */
  async *read(): AsyncGenerator<readonly Entry[], void> {
    const { format, entries } = await this.#open();
    const { command } = this.#use;
    const isStateNeeded = command === 'sync' || (command === 'import' && format !== 'ndjson');
    const held: Entry[] = [];
    const findFault = () => {
      const fault = this.#map.findFault(isStateNeeded);
      return fault && new Failure(`${this.file}: ${fault}`, EXIT.wrongUse);
    };
    for await (const some of entries) {
      held.push(...some);
      const fault = findFault();
      if (!fault) yield held.splice(0);
      else if (format === 'csv' || held.length >= MAX_USERS) throw fault;
    }
    const fault = held.length > 0 && findFault();
    if (fault) throw fault;
    yield held;
  }

  /** The users. Resolves when the first ones are read. */
  async begin(): Promise<AsyncGenerator<readonly Entry[], void>> {
    const entries = this.read();
    const first = await entries.next();
    return (async function* () {
      if (!first.done) yield first.value;
      yield* entries;
    })();
  }

  /** The users of a regular file, one by one. */
  async *readEach(): AsyncGenerator<Entry, void> {
    for await (const entries of this.read()) yield* entries;
    this.refuseChange();
  }

  /** The format that the options or the content decide, and the users. */
  async #open() {
    const { command, signal, member } = this.#use;
    let { format } = this.#options;
    let encoding = new TextDecoder(this.#options.encoding).encoding;
    const decide = (begin: Buffer, isWhole: boolean) => {
      encoding = findMark(begin) ?? encoding;
      const text = new TextDecoder(encoding).decode(begin, { stream: true });
      format ??= detectFormat(text, isWhole);
      return text;
    };
    const { begin, whole } = await readBegin(this.readBytes(signal), (begin) => {
      const text = decide(begin, false);
      // The first lines of CSV decide the delimiter.
      return (this.#options.format === 'csv' ? detectFormat(text, false) : format) !== undefined;
    });
    const text = decide(begin, true);
    if (format !== 'ndjson') refuseBegin(this.file, text);
    const read: ReadText = (readLine) => decode(whole, encoding, this.file, readLine);
    const use = { file: this.file, member, isEndNeeded: command === 'sync' };
    // A line of JSON is sent as it is.
    const map = command === 'import' && this.#map.isPlain ? undefined : this.#map;
    const open = {
      csv: () => new CsvScanner(text, this.#map, use).scan(read),
      json: () => new JsonScanner(this.#map).scan(read),
      ndjson: () => readJsonLines(encoding === 'utf-8' ? whole : toUtf8(read), map),
    };
    return { format, entries: open[format as Format]() };
  }
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
