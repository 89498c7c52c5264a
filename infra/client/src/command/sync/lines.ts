import type { User } from '../../users.ts';
import type { OptionsOf } from '../arguments.ts';
import { EXIT, Failure } from '../failure.ts';
import { type Item, invalid, nameOf, type Refusal } from '../files/entry.ts';
import type { UserFile } from '../files/user-file.ts';
import { LineTable } from '../line-table.ts';
import { faultOfKey } from '../user-keys.ts';

/** The members that are compared and written. */
export const MEMBERS = ['email', 'full_name', 'external_id', 'is_active'] as const;
export type Values = { readonly [Name in (typeof MEMBERS)[number]]?: User[Name] | null };
/** A line that is written, and its values. */
export type Line = Item & { readonly values: Values };
export type Refuse = (refusal: Refusal) => Promise<void>;

/** The lines of a file, and what becomes of them. */
export class SyncLines {
  readonly counts = { created: 0, updated: 0, deactivated: 0, equal: 0, refused: 0 };
  readonly table = new LineTable(MEMBERS, true);
  /** The ids of the users that differ from their lines, by position. */
  readonly changed = new Map<number, string>();
  /** The first line whose external id cannot be read, if that matters. */
  unreadable: string | undefined;
  hasUsers = false;
  /** Whether a line is refused whatever the users are. */
  #hasRefusals = false;
  /** By position of the first line of a user. */
  readonly #states: ('conflict' | 'equal' | 'refused' | undefined)[] = [];
  readonly #input: UserFile;
  readonly #options: OptionsOf<'sync'>;
  readonly #write: Refuse;

  /** Refused lines are written by `write`. */
  constructor(input: UserFile, options: OptionsOf<'sync'>, write: Refuse) {
    this.#input = input;
    this.#options = options;
    this.#write = write;
  }

  /** Reads all lines as digests. */
  async read(): Promise<void> {
    const { by, prefix = '', deactivateMissing } = this.#options;
    for await (const entry of this.#input.readEach()) {
      const isRefused = 'problem' in entry;
      const values = valuesOf(entry.user);
      const fault = this.#faultOfKey(values);
      this.hasUsers ||= !isRefused;
      this.#hasRefusals ||= isRefused || fault !== undefined;
      if (fault) {
        if (deactivateMissing) this.unreadable ??= nameOf(entry);
        continue;
      }
      if (!values[by]?.startsWith(prefix))
        throw new Failure(`${nameOf(entry)}: the external id does not begin with ${prefix}`, EXIT.wrongUse);
      const first = this.find(values);
      if (first === undefined) {
        this.table.add(entry.position, by, values);
        if (isRefused) this.#states[entry.position] = 'refused';
      } else if (isRefused || this.#states[first] === 'refused' || !this.table.isLine(first, values)) {
        this.#states[first] = 'conflict';
        this.#hasRefusals = true;
      }
    }
  }

  /** The lines that are written: not those that are refused, equal to their users, or repeat another line. */
  async *toWrite(refuse: Refuse): AsyncGenerator<Line, void> {
    // Lines that are all equal are not read again.
    if (!this.#hasRefusals && this.counts.equal === this.table.size) return;
    for await (const entry of this.#input.readEach()) {
      const values = valuesOf(entry.user);
      const problem = 'problem' in entry ? entry.problem : this.#findProblem(values);
      const first = this.find(values);
      if (problem) await refuse({ ...entry, problem });
      else if (first === entry.position && !this.isSettled(first)) {
        this.#input.refuseChange(!this.table.isLine(first, values));
        yield { ...(entry as Item), values };
      }
    }
  }

  /** The position of the line by which a user is matched. */
  find(user: Values): number | undefined {
    return this.table.find(this.#options.by, user[this.#options.by]);
  }

  isSettled(position: number): boolean {
    return this.#states[position] !== undefined;
  }

  noteEqual(position: number): void {
    this.#states[position] = 'equal';
    this.counts.equal += 1;
  }

  async refuse(refusal: Refusal): Promise<void> {
    this.#states[refusal.position] ??= 'refused';
    await this.#write(refusal);
    this.counts.refused += 1;
  }

  #findProblem(values: Values) {
    const fault = this.#faultOfKey(values);
    if (fault) return invalid(fault, `#/${this.#options.by}`);
    const first = this.find(values) ?? 0;
    if (this.#states[first] === 'conflict')
      return invalid('must not differ from another line of the same user', `#/${this.#options.by}`);
    const isNew = !this.changed.has(first) && !this.isSettled(first);
    return isNew && values.email === undefined ? invalid('must be present', '#/email') : undefined;
  }

  #faultOfKey(values: Values): string | undefined {
    const { by } = this.#options;
    return values[by] == null ? 'must be present' : faultOfKey(by, values[by]);
  }
}

/** Null for an email or a state leaves it. */
export function valuesOf(user: object = {}): Values {
  const values = user as Values;
  const isLeft = (name: keyof Values) => values[name] === null && (name === 'email' || name === 'is_active');
  const names = MEMBERS.filter((name) => Object.hasOwn(values, name) && !isLeft(name));
  return Object.fromEntries(names.map((name) => [name, values[name]]));
}
