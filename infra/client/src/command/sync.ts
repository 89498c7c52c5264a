import type { UserChange, VersionedUser } from '../operations.ts';
import { isProblem, type Problem } from '../problem.ts';
import { foldEmail, isSameEmail, type User, type Users } from '../users.ts';
import type { OptionsOf } from './arguments.ts';
import { type Batch, createItems, readBatches } from './batches.ts';
import { DigestTable } from './digest-table.ts';
import { EXIT, type ExitCode, Failure, reasonOf } from './failure.ts';
import { ColumnMap } from './files/columns.ts';
import { type Entry, type Item, invalid, nameOf, type Refusal } from './files/entry.ts';
import { readUsers } from './files/reader.ts';
import { Source } from './files/source.ts';
import { hash, membersOf } from './hash.ts';
import { type Output, openOutput, openStandardError, openStandardOutput } from './output.ts';
import type { Progress } from './progress.ts';
import { conflict, describeRefusal, refusalOf, taken } from './refusal.ts';
import type { Stop } from './stop.ts';
import { faultOfKey, findByKey } from './user-keys.ts';

type SyncOptions = OptionsOf<'sync'>;

const MEMBERS = ['email', 'full_name', 'external_id', 'is_active'] as const;
type Values = { readonly [Name in (typeof MEMBERS)[number]]?: User[Name] | null };
/** A line that is compared, and its values. */
type Line = Item & { readonly values: Values };
type State = 'conflict' | 'equal' | 'refused';

/** Users that are written at the same time, and that are read in one request. */
const MAX_CALLS = 16;
const MAX_IDS = 100;
const PAGE = 1000;
/** A gateway that changes each ETag must not keep a run in a loop. */
const MAX_ATTEMPTS = 20;

/** Makes users equal to the lines of a file. All lines are compared before the first write. */
export async function syncUsers(
  users: Users,
  options: SyncOptions,
  progress: Progress,
  { soon: signal }: Stop,
): Promise<ExitCode> {
  const { operand: file, rejected, plan, dryRun } = options;
  const source = new Source(file);
  if (!source.stats.isFile())
    throw new Failure(`${file} must be a file, because it is read several times`, EXIT.wrongUse);
  const refusals = rejected === undefined ? openStandardError() : await openOutput(rejected, 'empty');
  const planned =
    plan !== undefined ? await openOutput(plan, 'empty') : dryRun ? openStandardOutput() : undefined;
  const run = new SyncRun(users, source, options, { refusals, planned, signal });
  const hasStandardError = rejected !== undefined && planned === undefined;
  progress.start(() => ({ count: run.count, ...source.progress() }), hasStandardError);
  let failure: unknown = await run.toEnd().catch((error) => error);
  const close = async () => void (await Promise.all([planned?.close(), refusals.close()]));
  failure ??= await close().catch((error) => error);
  for (const message of failure ? [] : run.messages()) progress.say(message);
  if (signal.aborted) progress.say('Stopped. Run the same command again to continue.');
  else if (failure) progress.say(reasonOf(failure));
  if (run.hasWritten && failure && !signal.aborted) progress.say('Run the same command again to continue.');
  if (dryRun) progress.say('Nothing is written (--dry-run). The counts are those of the intended writes.');
  const { created, updated, deactivated, equal, refused } = run.counts;
  progress.say(
    `created ${created}, updated ${updated}, deactivated ${deactivated}, equal ${equal}, refused ${refused}`,
  );
  if (failure) return failure instanceof Failure ? failure.exitCode : EXIT.failed;
  return refused > 0 || run.unreadable ? EXIT.incomplete : EXIT.done;
}

type Outputs = {
  readonly refusals: Output;
  readonly planned: Output | undefined;
  readonly signal: AbortSignal;
};

class SyncRun {
  readonly counts = { created: 0, updated: 0, deactivated: 0, equal: 0, refused: 0 };
  /** The first line whose external id cannot be read, if that matters. */
  unreadable: string | undefined;
  readonly #users: Users;
  readonly #source: Source;
  readonly #options: SyncOptions;
  readonly #outputs: Outputs;
  readonly #map: ColumnMap;
  /** The position of the first line of a user, by a digest of what it is matched by. */
  readonly #positions = new DigestTable();
  /** By position: a digest of the values, the members that the line has as bits, and what is decided. */
  readonly #digests: number[] = [];
  readonly #members: number[] = [];
  readonly #states: (State | undefined)[] = [];
  /** The ids of the users that differ from their lines, by position, and of those without a line. */
  readonly #changed = new Map<number, string>();
  #missing: string[] = [];
  /** Inactive users whose lines have no state, and active users of which the limit may be a percentage. */
  #inactive = 0;
  #active = 0;
  #max = 0;
  #deactivated = 0;
  #writes = 0;
  #postponed: (readonly [Line, Problem])[] = [];
  readonly #running = new Set<Promise<void>>();
  #isPlanned = false;
  #failure: unknown;

  constructor(users: Users, source: Source, options: SyncOptions, outputs: Outputs) {
    this.#users = users;
    this.#source = source;
    this.#options = options;
    this.#outputs = outputs;
    this.#map = new ColumnMap(options.columns, MEMBERS);
  }

  get hasWritten(): boolean {
    return this.#isPlanned;
  }

  get count(): number {
    return Object.values(this.counts).reduce((sum, count) => sum + count);
  }

  messages(): readonly string[] {
    return [
      this.#map.describeUnused(),
      this.unreadable &&
        `${this.unreadable}: the external id cannot be read. No missing user is deactivated.`,
      this.#inactive > 0 &&
        `Inactive users whose lines do not say so: ${this.#inactive}. --reactivate makes them active.`,
    ].filter((message) => typeof message === 'string');
  }

  async toEnd(): Promise<void> {
    const { dryRun, maxDeactivated } = this.#options;
    const hasRefusals = await this.#readAll();
    await this.#compareAll();
    if (this.unreadable) this.#missing = [];
    // Lines that are all equal are not read again.
    const isDone = !hasRefusals && this.counts.equal === this.#positions.size;
    if (!isDone) await this.#plan();
    for (const id of this.#missing)
      await this.#notePlan({ id, action: 'deactivate', members: ['is_active'] });
    this.#source.refuseChange();
    this.#max = maxOf(maxDeactivated, this.#active);
    const intended = this.#deactivated;
    const isAbove = intended > this.#max;
    if (isAbove || !dryRun) Object.assign(this.counts, { created: 0, updated: 0, deactivated: 0 });
    if (isAbove) throw this.#aboveMax(intended, 'Nothing is written.');
    if (dryRun) return;
    this.#isPlanned = true;
    this.#deactivated = 0;
    if (!isDone) await this.#apply();
    for (const id of this.#missing) await this.#start(() => this.#deactivateMissing(id));
    await this.#finish();
  }

  /** Reads all lines as digests. Returns whether a line is refused. */
  async #readAll(): Promise<boolean> {
    const { by, prefix = '', operand: file, deactivateMissing } = this.#options;
    let [isEmpty, hasRefusals] = [true, false];
    for await (const entry of this.#entries()) {
      const isRefused = 'problem' in entry;
      const values = valuesOf(entry.user);
      const key = values[by];
      isEmpty &&= isRefused;
      hasRefusals ||= isRefused || faultOfKey(by, key) !== undefined;
      if (typeof key !== 'string' || faultOfKey(by, key)) {
        if (deactivateMissing) this.unreadable ??= nameOf(entry);
        continue;
      }
      if (!key.startsWith(prefix))
        throw new Failure(`${nameOf(entry)}: the external id does not begin with ${prefix}`, EXIT.wrongUse);
      const { position } = entry;
      const first = this.#positions.get(keyOf(by, key)) ?? position;
      const members = membersOf(MEMBERS, values);
      const digest = isRefused ? Number.NaN : digestOf(values, members);
      if (first === position) {
        this.#positions.set(keyOf(by, key), position);
        this.#digests[position] = digest;
        this.#members[position] = members;
        this.#states[position] = isRefused ? 'refused' : undefined;
      } else if (this.#digests[first] !== digest || this.#members[first] !== members) {
        this.#states[first] = 'conflict';
        hasRefusals = true;
      }
    }
    if (!isEmpty) return hasRefusals;
    for await (const entry of this.#entries()) await this.#accept(entry);
    throw new Failure(`${file} has no users`, EXIT.wrongUse);
  }

  /** Compares the users of the service with the lines. */
  async #compareAll(): Promise<void> {
    const { by, prefix = '', reactivate, deactivateMissing } = this.#options;
    for await (const user of this.#users.list({ limit: PAGE }, { signal: this.#outputs.signal })) {
      const isCounted = user.is_active && (by === 'email' || user.external_id?.startsWith(prefix) === true);
      if (isCounted) this.#active += 1;
      const position = this.#find(user);
      if (position === undefined && isCounted && deactivateMissing) this.#missing.push(user.id);
      if (position === undefined || this.#states[position]) continue;
      const members = this.#members[position] ?? 0;
      const isLeft = !user.is_active && (members & HAS_STATE) === 0;
      if (isLeft && !reactivate) this.#inactive += 1;
      if (this.#digests[position] === digestOf(user, members) && !(isLeft && reactivate))
        this.#noteEqual(position);
      else this.#changed.set(position, user.id);
    }
  }

  /** Refuses what cannot be written, and notes each intended write. */
  async #plan(): Promise<void> {
    const { adopt, dryRun, plan } = this.#options;
    let asked: Line[] = [];
    const planChanges = async (lines: readonly Line[]) => {
      const ids = lines.map(({ position }) => this.#changed.get(position) ?? '');
      const found = new Map<string, User>();
      for await (const user of this.#users.list({ ids, limit: MAX_IDS })) found.set(user.id, user);
      for (const [index, line] of lines.entries()) await this.#planLine(line, found.get(ids[index] ?? ''));
    };
    for await (const entry of this.#entries()) {
      const line = await this.#accept(entry);
      if (line === undefined) continue;
      if (this.#changed.has(line.position)) {
        if (asked.push(line) < MAX_IDS) continue;
        const lines = asked;
        asked = [];
        await this.#start(() => planChanges(lines));
      } else if (dryRun || plan !== undefined || (adopt && line.values.is_active === false))
        await this.#start(async () => {
          const holder = await this.#findHolder(line);
          if ('problem' in holder) await this.#refuse({ ...line, ...holder });
          else await this.#planLine(line, holder.user);
        });
    }
    await this.#start(() => planChanges(asked));
    await this.#finish();
  }

  async #planLine(line: Line, user: User | undefined): Promise<void> {
    const fault = user && this.#findFault(line, user);
    if (fault) return this.#refuse({ ...line, problem: fault });
    const change: Values | undefined = user ? this.#changeOf(line, user) : line.values;
    if (change === undefined) return this.#noteEqual(line.position);
    const state = change.is_active;
    const action = !user ? 'create' : state === undefined ? 'update' : state ? 'reactivate' : 'deactivate';
    const place = { line: line.line, index: line.index, id: user?.id };
    await this.#notePlan({ ...place, action, members: Object.keys(change) });
  }

  async #notePlan(write: { readonly action: string; readonly [name: string]: unknown }): Promise<void> {
    const { action } = write;
    if (action === 'deactivate') this.#deactivated += 1;
    this.counts[action === 'create' ? 'created' : action === 'deactivate' ? 'deactivated' : 'updated'] += 1;
    await this.#outputs.planned?.write(`${JSON.stringify(write)}\n`);
  }

  async #apply(): Promise<void> {
    for await (const batch of readBatches(this.#startUpdates(), async () => {}))
      await this.#start(() => this.#create(batch));
    await this.#finish();
    // In the opposite order, a chain of values that pass from user to user needs one round.
    for (let before = 0; this.#postponed.length > 0 && this.#writes > before; ) {
      before = this.#writes;
      for (const [line] of this.#postponed.splice(0).reverse()) {
        await this.#start(() => this.#write(line, this.#changed.get(line.position)));
        await this.#finish();
      }
    }
    for (const [line, problem] of this.#postponed) await this.#refuse({ ...line, problem });
  }

  /** Starts the update of each line whose user differs, and returns the lines without a user. */
  async *#startUpdates(): AsyncGenerator<readonly Item[], void> {
    for await (const entry of this.#entries()) {
      const line = await this.#accept(entry);
      if (this.#failure || this.#outputs.signal.aborted) return;
      const id = line && this.#changed.get(line.position);
      if (line && id !== undefined) await this.#start(() => this.#write(line, id));
      // A run that is killed leaves few such users active, because the next one counts them as deactivated.
      else if (line?.values.is_active === false) await this.#start(() => this.#create([line]));
      else if (line) yield [line];
    }
    this.#source.refuseChange();
  }

  async #create(batch: Batch): Promise<void> {
    const results = await createItems(this.#users, batch, () => crypto.randomUUID());
    for (const [index, item] of batch.entries()) {
      const line = { ...item, values: valuesOf(item.user) };
      const { status, user, problem } = results[index] as { status: number; user?: User; problem?: Problem };
      if (user) {
        this.#note('created');
        if (line.values.is_active === false && user.is_active) await this.#write(line, user.id, 'created');
      } else if (status === 409) await this.#resolve(line, problem as Problem);
      else await this.#refuse({ ...line, problem: problem as Problem });
    }
  }

  /** Decides what becomes of a line whose user was not created, because another one has a value. */
  async #resolve(line: Line, problem: Problem): Promise<void> {
    const own = await this.#lookUp(line);
    if (own) return this.#write(line, own.id);
    const holder = await this.#findHolder(line);
    if ('problem' in holder) await this.#refuse({ ...line, ...holder });
    else if (holder.user) await this.#write(line, holder.user.id, 'adopted');
    else this.#postponed.push([line, problem]);
  }

  /** Makes a user equal to its line. Each write is based on a read. */
  async #write(
    line: Line,
    given: string | undefined,
    how: 'own' | 'adopted' | 'created' = 'own',
  ): Promise<void> {
    for (let [id, attempt] = [given, 1]; ; attempt += 1) {
      const read = id === undefined ? undefined : await this.#users.find(id);
      const isOwn = how === 'adopted' ? isAdoptable(read, line) : read && this.#find(read) === line.position;
      if (!read || !isOwn) {
        if (how === 'created') return;
        const found = await this.#lookUp(line);
        if (!found) return this.#create([line]);
        id = found.id;
        how = 'own';
        continue;
      }
      const fault = this.#findFault(line, read);
      if (fault) return this.#refuse({ ...line, problem: fault });
      const change = how === 'created' ? read.is_active && { is_active: false } : this.#changeOf(line, read);
      if (!change) return how === 'created' ? undefined : this.#noteEqual(line.position);
      const isDeactivated = change.is_active === false && how !== 'created';
      try {
        await this.#change(read, change, isDeactivated);
        if (how !== 'created') this.#note(isDeactivated ? 'deactivated' : 'updated');
        return;
      } catch (error) {
        if (isOvertaken(error) && attempt < MAX_ATTEMPTS) continue;
        const problem = isProblem(error, 'conflict_error')
          ? { ...taken('email'), ...error.problem }
          : refusalOf(error);
        if (!problem) throw error;
        if (problem.status === 409) this.#postponed.push([line, problem]);
        else await this.#refuse({ ...line, problem });
        return;
      }
    }
  }

  async #deactivateMissing(id: string): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      const user = await this.#users.find(id);
      const isMissing = user?.is_active && user.external_id?.startsWith(this.#options.prefix ?? '');
      if (!isMissing || this.#find(user) !== undefined) return;
      try {
        await this.#change(user, { is_active: false }, true);
        return this.#note('deactivated');
      } catch (error) {
        if (!isOvertaken(error) || attempt === MAX_ATTEMPTS) throw error;
      }
    }
  }

  /** Changes a user as it was read. What other callers do meanwhile does not raise the number of deactivations. */
  async #change({ id, version }: VersionedUser, change: UserChange, isDeactivated: boolean): Promise<void> {
    if (isDeactivated && this.#deactivated >= this.#max)
      throw this.#aboveMax(this.#deactivated + 1, 'Stopped.');
    if (isDeactivated) this.#deactivated += 1;
    try {
      await this.#users.change(id, change, { ifVersion: version });
    } catch (error) {
      if (isDeactivated) this.#deactivated -= 1;
      throw error;
    }
  }

  #aboveMax(count: number, what: string): Failure {
    return new Failure(
      `${count} active users would be deactivated, and at most ${this.#max} may be (--max-deactivated). ${what}`,
      EXIT.incomplete,
    );
  }

  /** The line of an entry that is written; undefined if it is refused, equal or repeats another one. */
  async #accept(entry: Entry): Promise<Line | undefined> {
    const { by } = this.#options;
    const values = valuesOf(entry.user);
    const key = values[by];
    const fault = key == null ? 'must be present' : faultOfKey(by, key);
    const first = fault ? undefined : this.#positions.get(keyOf(by, String(key)));
    const state = first === undefined ? undefined : this.#states[first];
    const problem =
      'problem' in entry
        ? entry.problem
        : fault
          ? invalid(fault, `#/${by}`)
          : state === 'conflict'
            ? invalid('must not differ from another line of the same user', `#/${by}`)
            : first !== undefined &&
                !this.#changed.has(first) &&
                values.email === undefined &&
                state === undefined
              ? invalid('must be present', '#/email')
              : undefined;
    // The second time, the lines are refused already.
    if (problem && !this.#isPlanned) await this.#refuse({ ...entry, problem });
    if (problem || state || first !== entry.position) return undefined;
    this.#source.refuseChange(this.#digests[first] !== digestOf(values, membersOf(MEMBERS, values)));
    return { ...(entry as Item), values };
  }

  /** The user that has the other value of a line by which users are unique, if the line gets that user or may get the value. */
  async #findHolder({
    values,
  }: Line): Promise<{ readonly user?: User | undefined } | { readonly problem: Problem }> {
    const { by, adopt } = this.#options;
    const other = by === 'email' ? 'external_id' : 'email';
    const value = values[other];
    const user = faultOfKey(other, value) ? undefined : await findByKey(this.#users, other, String(value));
    if (!user) return {};
    const position = this.#find(user);
    if (user[by] === undefined && adopt && user.is_active) return { user };
    // Another line may free the value.
    if (position !== undefined && this.#states[position] === undefined) return {};
    return { problem: taken(other) };
  }

  /** With `--by email`, a user keeps its external id, and gets one only by `--adopt`. */
  #findFault({ values }: Line, user: User): Problem | undefined {
    const { by, adopt } = this.#options;
    const { external_id: own } = values;
    if (by === 'external_id' || own == null || own === user.external_id) return undefined;
    return user.external_id === undefined && adopt
      ? undefined
      : conflict('external_id', 'must be that of the user with this email');
  }

  #changeOf({ values }: Line, user: User): UserChange | undefined {
    const { reactivate } = this.#options;
    const wanted = { ...(reactivate && { is_active: true }), ...values };
    const differs = MEMBERS.filter(
      (name) => Object.hasOwn(wanted, name) && textOf(name, wanted) !== textOf(name, user),
    );
    return differs.length === 0 ? undefined : Object.fromEntries(differs.map((name) => [name, wanted[name]]));
  }

  async #lookUp({ values }: Line): Promise<User | undefined> {
    return findByKey(this.#users, this.#options.by, String(values[this.#options.by]));
  }

  /** The position of the line by which a user is matched. */
  #find(user: User): number | undefined {
    const key = user[this.#options.by];
    return key === undefined ? undefined : this.#positions.get(keyOf(this.#options.by, key));
  }

  #noteEqual(position: number): void {
    this.#states[position] = 'equal';
    this.counts.equal += 1;
  }

  #note(count: 'created' | 'updated' | 'deactivated'): void {
    this.counts[count] += 1;
    this.#writes += 1;
  }

  async #refuse(refusal: Refusal): Promise<void> {
    this.#states[refusal.position] ??= 'refused';
    const writing = this.#outputs.refusals.write(describeRefusal(refusal));
    // Without a reader of standard error, the run goes on and fails at the end.
    await (this.#options.rejected === undefined ? writing.catch(() => {}) : writing);
    this.counts.refused += 1;
  }

  async *#entries(): AsyncGenerator<Entry, void> {
    const use = { command: 'sync', member: this.#options.by } as const;
    for await (const entries of readUsers(this.#source, this.#options, this.#map, use, this.#outputs.signal))
      yield* entries;
    this.#source.refuseChange();
  }

  /** Starts a task, when there is place for it. After a failure and after Ctrl-C none is started. */
  async #start(task: () => Promise<void>): Promise<void> {
    if (this.#failure || this.#outputs.signal.aborted) return;
    const running = task().then(
      () => void this.#running.delete(running),
      (error) => {
        this.#running.delete(running);
        this.#failure ??= error;
      },
    );
    this.#running.add(running);
    if (this.#running.size >= MAX_CALLS) await Promise.race(this.#running);
  }

  async #finish(): Promise<void> {
    await Promise.all(this.#running);
    if (this.#outputs.signal.aborted) throw new Failure('Stopped. Run the same command again to continue.');
    if (this.#failure) throw this.#failure;
  }
}

/** Null for an email or a state leaves it. */
function valuesOf(user: object = {}): Values {
  const values = user as Values;
  const names = MEMBERS.filter(
    (name) => Object.hasOwn(values, name) && !(values[name] === null && LEFT.includes(name)),
  );
  return Object.fromEntries(names.map((name) => [name, values[name]]));
}

/** Whether an active user has the email of a line, and no external id. */
function isAdoptable(user: User | undefined, { values }: Line): boolean | undefined {
  return user?.is_active && user.external_id === undefined && isSameEmail(user.email, String(values.email));
}

/** Whether another caller has changed or deleted the user since it was read. */
function isOvertaken(error: unknown): boolean {
  return isProblem(error, 'precondition_failed_error') || isProblem(error, 'not_found_error');
}

const LEFT: readonly string[] = ['email', 'is_active'];
const HAS_STATE = 1 << MEMBERS.indexOf('is_active');

function digestOf(values: Values, members: number): number {
  return hash(MEMBERS.map((name, bit) => (members & (1 << bit) ? textOf(name, values) : '')).join('\n'));
}

/** A text that is the same for equal values. Emails are compared as the service compares them. */
function textOf(name: keyof Values, values: Values): string {
  const value = values[name] ?? null;
  return JSON.stringify(name === 'email' && typeof value === 'string' ? foldEmail(value) : value);
}

function keyOf(by: 'external_id' | 'email', key: string): number {
  return hash(by === 'email' ? foldEmail(key) : key);
}

/** The limit: a number, or a percentage that is rounded up, without the errors of floating point. */
function maxOf(text: string, count: number): number {
  const [, whole = '', digits = '', percent] = /^(\d+)(?:\.(\d+))?(%?)$/.exec(text) ?? [];
  if (!percent) return Number(whole);
  const divisor = 10n ** BigInt(digits.length + 2);
  return Number((BigInt(whole + digits) * BigInt(count) + divisor - 1n) / divisor);
}
