import type { Problem } from '../../problem.ts';
import type { NewUser } from '../../users.ts';
import { EXIT, Failure } from '../failure.ts';
import { type Column, type ColumnMap, visible } from './columns.ts';
import { type Entry, invalid, TOO_LONG } from './entry.ts';
import { isTooLong, MAX_BYTES, Scanner } from './scanner.ts';

/** Cells of `is_active`, in lower case. */
const STATES: Readonly<Record<string, boolean>> = {
  ...{ true: true, yes: true, 1: true },
  ...{ false: false, no: false, 0: false },
};
/** Headers that a message has. */
const MAX_HEADERS = 10;

/** The file, the member by which users are found, and whether the last line must have its end. */
type CsvUse = {
  readonly file: string;
  readonly member: string | undefined;
  readonly isEndNeeded: boolean;
};

/**
 * Finds the users of CSV (RFC 4180). csv-parse would give up at a record that is too long, and lose the record after a
 * fault.
 */
export class CsvScanner extends Scanner {
  readonly #use: CsvUse;
  readonly #delimiter: string;
  readonly #token: RegExp;
  /** The number of lines before the header. */
  readonly #skipped: number;
  #columns: readonly (readonly Column[])[] | undefined;
  #state: 'start' | 'plain' | 'quoted' | 'closed' = 'start';
  #cells: string[] = [];
  #cell = '';
  /** In characters, of the record. */
  #length = 0;

  /** For a file that begins with this text. */
  constructor(begin: string, map: ColumnMap, use: CsvUse) {
    super(map);
    this.#use = use;
    const { delimiter, skipped } = findHeader(begin, map);
    this.#delimiter = delimiter;
    this.#skipped = skipped;
    const code = `\\u${delimiter.charCodeAt(0).toString(16).padStart(4, '0')}`;
    this.#token = new RegExp(`[^"\r\n${code}]+|\r\n?|[^]`, 'g');
  }

  protected override hasHead(): boolean {
    return this.#columns !== undefined;
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
      } else if (token === '"' && this.begin > this.#skipped) {
        if (this.#state === 'plain') throw this.fault('a quote within a cell that does not begin with one');
        if (this.#state === 'closed') this.#add(token);
        this.#state = 'quoted';
      } else {
        if (this.#state === 'closed') throw this.fault('text after a closing quote');
        this.#add(token);
        this.#state = 'plain';
      }
    }
  }

  protected end(): void {
    if (this.#state === 'quoted') throw this.fault('its quote is not closed');
    if (this.#state === 'start' && this.#length === 0) return;
    this.#endCell();
    this.#endRecord();
    if (this.#use.isEndNeeded)
      throw new Failure(
        `${this.#use.file}: the last line has no line end, so that the file may be incomplete`,
      );
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
    const cells = this.#cells;
    if (isLong || (this.begin > this.#skipped && cells.some((cell) => cell.trim() !== ''))) {
      if (this.#columns) this.found.push(this.#createEntry(isLong ? undefined : cells, this.#columns));
      else this.#columns = this.#readHeader(isLong ? [] : cells);
    }
    this.#cells = [];
    this.#length = 0;
    this.line += 1;
    this.begin = this.line;
  }

  #readHeader(cells: readonly string[]): readonly (readonly Column[])[] {
    const { file, member } = this.#use;
    const columns = this.map.readHeaders(cells, this.begin);
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

  /** The user of a record, whose cells are undefined if it is too long. */
  #createEntry(cells: readonly string[] | undefined, columns: readonly (readonly Column[])[]): Entry {
    const place = { line: this.begin, position: ++this.position };
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
    return problem
      ? { ...place, user, problem }
      : { ...place, user, bytes: Buffer.from(JSON.stringify(user)) };
  }
}

/** The delimiter that gives the most members, and the number of lines before the header. */
function findHeader(begin: string, map: ColumnMap): { readonly delimiter: string; readonly skipped: number } {
  const [before = ''] = /^(?:(?:sep=.|#TYPE.*)(?:\r\n|\n|\r|$))*/i.exec(begin) ?? [];
  const [, mark] = /^sep=(.)/im.exec(before) ?? [];
  const [header = ''] = /\S[^\r\n]*/.exec(begin.slice(before.length)) ?? [];
  const score = (delimiter: string) => {
    const cells = header.split(delimiter).map((cell) => cell.trim().replace(/^"(.*)"$/, '$1'));
    return map.countMembers(cells) * 1e6 + cells.length;
  };
  const best = [',', ';', '\t'].reduce((best, one) => (score(one) > score(best) ? one : best));
  return { delimiter: mark ?? best, skipped: before.split(/\r\n|\n|\r/).length - 1 };
}
