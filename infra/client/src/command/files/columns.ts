import { USER_FORMATS } from '../../checks.ts';
import { EXIT, Failure } from '../failure.ts';

/** Which headers of CSV or members of JSON are which members of a user. */
export type Columns = {
  readonly given: readonly Column[];
  /** In lower case. */
  readonly ignored: ReadonlySet<string>;
};
/** `isInverted` is of a state: a user is active if the value is not true. */
export type Column = { readonly member: string; readonly name: string; readonly isInverted: boolean };

const MEMBERS = Object.keys(USER_FORMATS);

/** Names that state whether a user is active, in lower case. */
const STATES = ['enabled', 'disabled', 'active', 'blocked', 'suspended', 'status', 'accountenabled'];

/**
 * The columns that `--columns` and `--ignore` name.
 *
 * @throws {Error} with the fault
 */
export function parseColumns(columns: readonly string[] = [], ignored: readonly string[] = []): Columns {
  // A header may have a comma.
  const texts = columns.flatMap((text) => text.split(/,(?=\s*\w+=)/));
  const given = texts.map((text): Column => {
    const [, member = '', mark, quoted, plain = ''] = /^\s*(\w+)=(!?)(?:"(.*)"|(.*))$/s.exec(text) ?? [];
    const name = (quoted ?? plain).trim();
    if (!MEMBERS.includes(member) || name === '')
      throw new Error(`--columns must be <member>=<column>, with one of: ${MEMBERS.join(', ')}`);
    if (mark && member !== 'is_active') throw new Error('In --columns, ! is for is_active only');
    return { member, name, isInverted: mark === '!' };
  });
  const twice = given.find(({ member }, index) => given.findIndex((one) => one.member === member) < index);
  if (twice) throw new Error(`--columns names two columns for ${twice.member}`);
  return { given, ignored: new Set(ignored.flatMap((name) => [name, ...name.split(',')]).map(fold)) };
}

/** The members of a user that a file has, by the names that it has for them. */
export class ColumnMap {
  readonly #columns: Columns;
  readonly #used: readonly string[];
  readonly #targets = new Map<string, Column[]>();
  readonly #found = new Map<string, readonly Column[]>();
  readonly #unused = new Map<string, number>();
  readonly #unseen: Set<string>;
  #hasState = false;
  #state: string | undefined;

  /** Members that are not `used` are named as such. */
  constructor(columns: Columns, used: readonly string[] = MEMBERS) {
    this.#columns = columns;
    this.#used = used;
    for (const column of columns.given) {
      const targets = this.#targets.get(column.name) ?? [];
      this.#targets.set(column.name, [...targets, column]);
    }
    this.#unseen = new Set(this.#targets.keys());
  }

  /** Whether a user of JSON stays as it is. */
  get isPlain(): boolean {
    const { given, ignored } = this.#columns;
    return given.length === 0 && !MEMBERS.some((member) => ignored.has(member));
  }

  /** The user with the members of an object. */
  readObject(object: object, line: number): Readonly<Record<string, unknown>> {
    const user: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(object)) {
      for (const { member, isInverted } of this.#find(name, name, line)) {
        if (Object.hasOwn(user, member)) throw twoColumns(member, line);
        user[member] = isInverted && typeof value === 'boolean' ? !value : value;
      }
    }
    return user;
  }

  /** How many headers of CSV are members. */
  countMembers(headers: readonly string[]): number {
    return headers.filter((header) => this.#targets.has(header.trim()) || MEMBERS.includes(fold(header)))
      .length;
  }

  /** The members of each column of CSV. */
  readHeaders(headers: readonly string[], line: number): readonly (readonly Column[])[] {
    const found = headers.map((header) => this.#find(header.trim(), fold(header), line));
    const members = found.flat().map(({ member }) => member);
    const twice = members.find((member, index) => members.indexOf(member) < index);
    if (twice) throw twoColumns(twice, line);
    return found;
  }

  /** The members that have the value of a column. `own` is the member of its own name. */
  #find(name: string, own: string, line: number): readonly Column[] {
    const known = this.#found.get(name);
    if (known) return known;
    const found = this.#targets.get(name) ?? this.#findOwn(name, own, line);
    this.#unseen.delete(name);
    this.#hasState ||= found.some(({ member }) => member === 'is_active');
    if (this.#found.size < MAX_KNOWN) this.#found.set(name, found);
    return found;
  }

  #findOwn(name: string, own: string, line: number): readonly Column[] {
    if (this.#columns.ignored.has(fold(name))) return [];
    if (this.#used.includes(own)) return [{ member: own, name, isInverted: false }];
    if (STATES.includes(fold(name))) this.#state ??= name;
    if (!this.#unused.has(name) && this.#unused.size < MAX_NAMES) this.#unused.set(name, line);
    return [];
  }

  /** What the user must decide before the file is read to its end; undefined if nothing is left to decide. */
  findFault(isStateNeeded: boolean): string | undefined {
    const [unseen] = this.#unseen;
    if (unseen !== undefined) return `it has no column ${visible(unseen)}`;
    if (!isStateNeeded || this.#hasState || this.#state === undefined) return undefined;
    const name = visible(this.#state);
    return (
      `it has no is_active, and ${name} may be the state of a user. Add --columns is_active=${name} ` +
      `(is_active=!${name} if it is the opposite), or --ignore ${name}`
    );
  }

  /** The message that names what is not used; undefined if everything is. */
  describeUnused(): string | undefined {
    const names = [...this.#unused].map(([name, line]) => `${visible(name)} (first line ${line})`);
    return names.length === 0 ? undefined : `Members that are not used: ${names.join(', ')}`;
  }
}

/** Names that a message lists, and names that are looked up once. */
const MAX_NAMES = 20;
const MAX_KNOWN = 1000;

/** A name for a message. */
export function visible(name: string): string {
  return name.slice(0, 60).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Surrogate}]/gu, '�');
}

function twoColumns(member: string, line: number): Failure {
  return new Failure(
    `Line ${line}: two columns for ${member}. Add --ignore for one of them, or --columns for another member`,
    EXIT.wrongUse,
  );
}

function fold(name: string): string {
  return name.trim().toLowerCase();
}
