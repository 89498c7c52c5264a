import { USER_FORMATS } from '../checks.ts';
import { foldEmail } from '../users.ts';
import { DigestTable } from './digest-table.ts';
import { hash } from './hash.ts';
import type { UserKey } from './user-keys.ts';

/** The members of a line or of a user. */
export type Values = Readonly<Record<string, unknown>>;

/** Lines as numbers, so that a million of them fit into the memory, and the users that they are compared with. */
export class LineTable {
  readonly #names: readonly string[];
  readonly #areEmailsFolded: boolean;
  /** The positions of lines, by digests of what they are matched by. */
  readonly #positions = new DigestTable();
  /** By position: a digest of the values, and the members that the line has as bits. */
  readonly #digests: number[] = [];
  readonly #members: number[] = [];

  /** Only members of these names are compared, and emails as the service compares them if they are folded. */
  constructor(names: readonly string[], areEmailsFolded = false) {
    this.#names = names;
    this.#areEmailsFolded = areEmailsFolded;
  }

  get size(): number {
    return this.#positions.size;
  }

  add(position: number, by: UserKey, values: Values): void {
    this.#positions.set(digestOfKey(by, values[by]), position);
    this.#members[position] = this.#membersOf(values);
    this.#digests[position] = this.#digestOf(values);
  }

  /** The position of the line that is matched by this value. */
  find(by: UserKey, value: unknown): number | undefined {
    return value == null ? undefined : this.#positions.get(digestOfKey(by, value));
  }

  hasMember(position: number, name: string): boolean {
    return ((this.#members[position] ?? 0) & (1 << this.#names.indexOf(name))) !== 0;
  }

  /** Whether these are the values of the line at a position. */
  isLine(position: number, values: Values): boolean {
    return this.#digests[position] === this.#digestOf(values);
  }

  /** Whether a user has the values of the line at a position. */
  isEqual(position: number, user: Values): boolean {
    return this.#digests[position] === this.#digestOf(user, this.#members[position]);
  }

  /** The members of a line that are other ones than those of a user. */
  findDifferences(values: Values, user: Values): readonly string[] {
    return this.#names.filter(
      (name) => Object.hasOwn(values, name) && this.#textOf(name, values) !== this.#textOf(name, user),
    );
  }

  #membersOf(values: Values): number {
    return this.#names.reduce((bits, name, n) => (Object.hasOwn(values, name) ? bits | (1 << n) : bits), 0);
  }

  #digestOf(values: Values, members = this.#membersOf(values)): number {
    let text = '';
    for (const [bit, name] of this.#names.entries())
      text += members & (1 << bit) ? `${this.#textOf(name, values)}\n` : '\n';
    return hash(text);
  }

  /** A text that is the same for each form of a value: ids in any case, times as instants, and null for an absent member. */
  #textOf(name: string, values: Values): string {
    const value = values[name];
    if (typeof value !== 'string') return JSON.stringify(value ?? null);
    const format = USER_FORMATS[name];
    if (format === 'uuid') return value.toLowerCase();
    const isFolded = name === 'email' && this.#areEmailsFolded;
    return (
      (format === 'date-time' && instantOf(value)) || JSON.stringify(isFolded ? foldEmail(value) : value)
    );
  }
}

function digestOfKey(by: UserKey, value: unknown): number {
  const text = String(value);
  return hash(`${by}:${by === 'id' ? text.toLowerCase() : by === 'email' ? foldEmail(text) : text}`);
}

/** The milliseconds of a time, and its digits beyond them; undefined for what is not the same instant in each time zone. */
export function instantOf(value: unknown): string | undefined {
  const time = typeof value === 'string' && OFFSET.test(value) ? Date.parse(value) : Number.NaN;
  const [, digits = ''] = /:\d\d\.\d{3}(\d*?)0*(?!\d)/.exec(String(value)) ?? [];
  return Number.isNaN(time) ? undefined : `${time}.${digits}`;
}

/** The end of a time: an offset in a form that JavaScript reads, after the minutes or seconds. */
const OFFSET =
  /:\d\d(?:\.\d+)?(?:\s*[AP]M)?\s*(?:Z|UTC?|GMT|[ECMP][SD]T|(?:UTC?|GMT)?[+-]\d{1,4}(?::?\d\d)?)\s*(?:\(.*\)\s*)?$/i;
