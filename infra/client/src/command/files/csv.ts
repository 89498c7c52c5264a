import type { Problem } from '../../problem.ts';
import type { NewUser } from '../../users.ts';
import { EXIT, Failure } from '../failure.ts';
import { type Column, type ColumnMap, visible } from './columns.ts';
import { type Entry, invalid, TOO_LONG } from './entry.ts';
import { isTooLong, MAX_BYTES, type Scanner, scan } from './scanner.ts';

/** A record of CSV, and the line at which it begins. `cells` is undefined if the record is too long. */
type CsvRecord = { readonly line: number; readonly cells: readonly string[] | undefined };

type State = 'start' | 'plain' | 'quoted' | 'closed';

const [LINE_FEED, RETURN, QUOTE] = [10, 13, 34];

/**
 * Reads records of CSV (RFC 4180). LF, CR and CRLF end a record. No package does this: csv-parse gives up at a record that
 * is too long, and loses the record after a fault.
 */
class CsvScanner implements Scanner<CsvRecord> {
  fault: Failure | undefined;
  /** Whether the last record has a line end. */
  isEnded = true;
  line: number;
  readonly #delimiter: number;
  #state: State = 'start';
  #cells: string[] = [];
  #cell = '';
  /** The line at which the record begins, and its characters so far. */
  #begin: number;
  #length = 0;
  #isAfterReturn = false;

  constructor(delimiter: string, line = 1) {
    this.#delimiter = delimiter.charCodeAt(0);
    this.line = line;
    this.#begin = line;
  }

  push(text: string): CsvRecord[] {
    const records: CsvRecord[] = [];
    let from = 0;
    for (let at = 0; at < text.length && !this.fault; at += 1) {
      const code = text.charCodeAt(at);
      const isSecond = code === LINE_FEED && this.#isAfterReturn;
      this.#isAfterReturn = code === RETURN;
      if (this.#state === 'quoted') {
        if (code === QUOTE) {
          this.#add(text.slice(from, at));
          this.#state = 'closed';
        } else if ((code === LINE_FEED && !isSecond) || code === RETURN) this.line += 1;
      } else if (isSecond) from = at + 1;
      else if (code === this.#delimiter || code === LINE_FEED || code === RETURN) {
        this.#endCell(this.#state === 'closed' ? '' : text.slice(from, at));
        from = at + 1;
        if (code !== this.#delimiter) records.push(this.#endRecord());
      } else if (code === QUOTE) {
        if (this.#state === 'plain') this.#fail('a quote within a cell that does not begin with one');
        if (this.#state === 'closed') this.#cell += '"';
        this.#state = 'quoted';
        from = at + 1;
      } else if (this.#state === 'closed') this.#fail('text after a closing quote');
      else this.#state = 'plain';
    }
    if (this.#state === 'plain' || this.#state === 'quoted') this.#add(text.slice(from));
    return records;
  }

  end(): CsvRecord[] {
    if (this.#state === 'quoted') this.#fail('its quote is not closed');
    if (this.fault || (this.#state === 'start' && this.#length === 0)) return [];
    this.isEnded = false;
    this.#endCell('');
    return [this.#endRecord()];
  }

  #add(text: string): void {
    this.#length += text.length;
    this.#cell = this.#length > MAX_BYTES ? '' : this.#cell + text;
  }

  #endCell(text: string): void {
    this.#add(text);
    this.#length += 1;
    if (this.#length <= MAX_BYTES + 1) this.#cells.push(this.#cell);
    this.#cell = '';
    this.#state = 'start';
  }

  #endRecord(): CsvRecord {
    const isLong = this.#length > MAX_BYTES + 1 || isTooLong(this.#length, () => this.#cells.join(','));
    const record = { line: this.#begin, cells: isLong ? undefined : this.#cells };
    this.#cells = [];
    this.#length = 0;
    this.line += 1;
    this.#begin = this.line;
    return record;
  }

  #fail(fault: string): void {
    this.fault ??= new Failure(`Line ${this.#begin}: ${fault}`);
  }
}

/** Cells of `is_active`, in lower case. */
const STATES = new Map([
  ...['true', 'yes', '1'].map((cell) => [cell, true] as const),
  ...['false', 'no', '0'].map((cell) => [cell, false] as const),
]);

/** The users of a file that begins with this text. */
export async function* readCsv(
  read: (readLine: () => number) => AsyncIterable<string>,
  begin: string,
  map: ColumnMap,
  {
    file,
    member,
    isEndNeeded,
  }: { readonly file: string; readonly member: string | undefined; readonly isEndNeeded: boolean },
): AsyncGenerator<readonly Entry[], void> {
  const { delimiter, line, skipped } = findDelimiter(begin, map);
  const scanner = new CsvScanner(delimiter, line);
  const readRest = async function* (readLine: () => number) {
    let left = skipped;
    for await (const text of read(readLine)) {
      yield text.slice(left);
      left = Math.max(left - text.length, 0);
    }
  };
  let columns: readonly (readonly Column[])[] | undefined;
  let position = 0;
  for await (const records of scan(scanner, readRest)) {
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
  let [line, skipped] = [1, 0];
  let delimiters = [',', ';', '\t'];
  for (;;) {
    const [first, mark] = /^(?:sep=(.)|#TYPE.*)(?:\r\n|\n|\r|$)/i.exec(begin.slice(skipped)) ?? [];
    if (!first) break;
    if (mark) delimiters = [mark];
    skipped += first.length;
    line += 1;
  }
  const scores = delimiters.map((delimiter) => {
    const scanner = new CsvScanner(delimiter);
    const records = [...scanner.push(begin.slice(skipped)), ...scanner.end()];
    const cells = records.find((record) => record.cells?.some((cell) => cell.trim() !== ''))?.cells ?? [];
    return { delimiter, line, skipped, score: map.countMembers(cells) * 1e6 + cells.length };
  });
  return scores.reduce((best, one) => (one.score > best.score ? one : best));
}

function readHeader({ line, cells = [] }: CsvRecord, map: ColumnMap, file: string, member?: string) {
  const columns = map.readHeaders(cells, line);
  const members = columns.flat().map((column) => column.member);
  if (members.length > 0 && (member === undefined || members.includes(member))) return columns;
  const names = cells
    .filter((cell) => !cell.includes('@'))
    .slice(0, MAX_HEADERS)
    .map(visible);
  const what =
    members.length > 0 ? `has no column ${member}` : 'is neither JSON nor CSV with a header for a member';
  throw new Failure(
    `${file} ${what}. Its first headers: ${names.join(', ') || 'none'}. Name columns: --columns ${member ?? 'email'}=<header>`,
    EXIT.wrongUse,
  );
}

const MAX_HEADERS = 10;

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
      const state = STATES.get(text);
      if (/[\r\n]/.test(text)) problem ??= invalid('must not have a line end', `#/${member}`);
      else if (member !== 'is_active') values[member] = text;
      else if (state === undefined)
        problem ??= invalid('must be true, false, yes, no, 1 or 0', '#/is_active');
      else values[member] = state !== isInverted;
    }
  }
  const user = values as NewUser;
  return problem ? { ...place, user, problem } : { ...place, user, bytes: Buffer.from(JSON.stringify(user)) };
}
