import type { Problem } from '../../problem.ts';
import type { NewUser } from '../../users.ts';
import { EXIT, Failure } from '../failure.ts';
import { type Column, type ColumnMap, visible } from './columns.ts';
import { type Entry, invalid, TOO_LONG } from './entry.ts';
import { isTooLong, MAX_BYTES, type ReadText, Scanner } from './scanner.ts';

/** A record of CSV, and the line at which it begins. `cells` is undefined if the record is too long. */
type CsvRecord = { readonly line: number; readonly cells: readonly string[] | undefined };

/**
 * Finds the records of CSV (RFC 4180). csv-parse would give up at a record that is too long, and lose the record after a
 * fault.
 */
class CsvScanner extends Scanner<CsvRecord> {
  /** Whether the last record has a line end. */
  isEnded = true;
  readonly #delimiter: string;
  readonly #token: RegExp;
  #state: 'start' | 'plain' | 'quoted' | 'closed' = 'start';
  #cells: string[] = [];
  #cell = '';
  /** The line at which the record begins, and its characters so far. */
  #begin: number;
  #length = 0;

  constructor(delimiter: string, line: number) {
    super(line);
    this.#delimiter = delimiter;
    const code = `\\u${delimiter.charCodeAt(0).toString(16).padStart(4, '0')}`;
    this.#token = new RegExp(`[^"\r\n${code}]+|\r\n?|[^]`, 'g');
    this.#begin = line;
  }

  protected push(text: string): void {
    for (const [token] of text.matchAll(this.#token)) {
      const isEnd = token === '\n' || token[0] === '\r';
      if (this.#state === 'quoted') {
        if (isEnd) this.line += 1;
        if (token === '"') this.#state = 'closed';
        else this.#add(token);
      } else if (isEnd || token === this.#delimiter) {
        this.#endCell();
        if (isEnd) this.#endRecord();
      } else if (token === '"') {
        if (this.#state === 'plain')
          throw this.fault('a quote within a cell that does not begin with one', this.#begin);
        if (this.#state === 'closed') this.#add(token);
        this.#state = 'quoted';
      } else {
        if (this.#state === 'closed') throw this.fault('text after a closing quote', this.#begin);
        this.#add(token);
        this.#state = 'plain';
      }
    }
  }

  protected end(): void {
    if (this.#state === 'quoted') throw this.fault('its quote is not closed', this.#begin);
    if (this.#state === 'start' && this.#length === 0) return;
    this.isEnded = false;
    this.#endCell();
    this.#endRecord();
  }

  #add(text: string): void {
    this.#length += text.length;
    this.#cell = this.#length > MAX_BYTES ? '' : this.#cell + text;
  }

  #endCell(): void {
    this.#length += 1;
    if (this.#length <= MAX_BYTES + 1) this.#cells.push(this.#cell);
    this.#cell = '';
    this.#state = 'start';
  }

  #endRecord(): void {
    const isLong = isTooLong(this.#length - 1, this.#cells.join(','));
    this.found.push({ line: this.#begin, cells: isLong ? undefined : this.#cells });
    this.#cells = [];
    this.#length = 0;
    this.line += 1;
    this.#begin = this.line;
  }
}

/** Cells of `is_active`, in lower case. */
const STATES: Readonly<Record<string, boolean>> = {
  ...{ true: true, yes: true, 1: true },
  ...{ false: false, no: false, 0: false },
};

/** The file, the member by which users are found, and whether the last line must have its end. */
export type CsvUse = {
  readonly file: string;
  readonly member: string | undefined;
  readonly isEndNeeded: boolean;
};

/** The users of a file that begins with this text. */
export async function* readCsv(
  read: ReadText,
  begin: string,
  map: ColumnMap,
  { file, member, isEndNeeded }: CsvUse,
): AsyncGenerator<readonly Entry[], void> {
  const { delimiter, lines, skipped } = findDelimiter(begin, map);
  const scanner = new CsvScanner(delimiter, lines + 1);
  const readRest = async function* (readLine: () => number) {
    let left = skipped;
    for await (const text of read(readLine)) {
      yield text.slice(left);
      left = Math.max(left - text.length, 0);
    }
  };
  let columns: readonly (readonly Column[])[] | undefined;
  let position = 0;
  for await (const records of scanner.scan(readRest)) {
    const entries: Entry[] = [];
    for (const record of records) {
      if (record.cells?.every((cell) => cell.trim() === '')) continue;
      if (columns) entries.push(createCsvEntry(record, columns, ++position));
      else columns = readHeader(record, map, file, member);
    }
    if (columns) yield entries;
  }
  if (isEndNeeded && !scanner.isEnded)
    throw new Failure(`${file}: the last line has no line end, so that the file may be incomplete`);
}

/** The delimiter that gives the most members, and what comes before the header. */
function findDelimiter(begin: string, map: ColumnMap) {
  let delimiters = [',', ';', '\t'];
  let [lines, skipped] = [0, 0];
  for (;;) {
    const [first, mark] = /^(?:sep=(.)|#TYPE.*)(?:\r\n|\n|\r|$)/i.exec(begin.slice(skipped)) ?? [];
    if (!first) break;
    if (mark) delimiters = [mark];
    skipped += first.length;
    lines += 1;
  }
  const [header = ''] = /\S[^\r\n]*/.exec(begin.slice(skipped)) ?? [];
  const score = (delimiter: string) => {
    const cells = header.split(delimiter).map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'));
    return map.countMembers(cells) * 1e6 + cells.length;
  };
  const delimiter = delimiters.reduce((best, one) => (score(one) > score(best) ? one : best));
  return { delimiter, lines, skipped };
}

const MAX_HEADERS = 10;

function readHeader({ line, cells = [] }: CsvRecord, map: ColumnMap, file: string, member?: string) {
  const columns = map.readHeaders(cells, line);
  const members = columns.flat().map((column) => column.member);
  if (members.length > 0 && (member === undefined || members.includes(member))) return columns;
  const names = cells.filter((cell) => !cell.includes('@')).slice(0, MAX_HEADERS);
  const what =
    members.length > 0 ? `has no column ${member}` : 'is neither JSON nor CSV with a header for a member';
  const shown = names.map(visible).join(', ') || 'none';
  throw new Failure(
    `${file} ${what}. Its first headers: ${shown}. Name columns: --columns ${member ?? 'email'}=<header>`,
    EXIT.wrongUse,
  );
}

function createCsvEntry(
  { line, cells }: CsvRecord,
  columns: readonly (readonly Column[])[],
  position: number,
): Entry {
  const place = { line, position };
  if (cells === undefined) return { ...place, problem: TOO_LONG };
  if (cells.length !== columns.length)
    return { ...place, problem: invalid(`must have ${columns.length} cells, as the header has`) };
  const values: Record<string, unknown> = {};
  let problem: Problem | undefined;
  for (const [index, cell] of cells.entries()) {
    for (const { member, isInverted } of columns[index] ?? []) {
      const text = member === 'is_active' ? cell.trim().toLowerCase() : cell;
      if (text === '') continue;
      if (/[\r\n]/.test(text)) problem ??= invalid('must not have a line end', `#/${member}`);
      else if (member !== 'is_active') values[member] = text;
      else if (!Object.hasOwn(STATES, text))
        problem ??= invalid('must be true, false, yes, no, 1 or 0', '#/is_active');
      else values[member] = STATES[text] !== isInverted;
    }
  }
  const user = values as NewUser;
  return problem ? { ...place, user, problem } : { ...place, user, bytes: Buffer.from(JSON.stringify(user)) };
}
