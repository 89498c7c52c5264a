import { isProblem, type Problem } from '../problem.ts';
import { type BatchResult, isSameEmail, type NewUser, type User, type Users } from '../users.ts';
import type { OptionsOf } from './arguments.ts';
import { type Batch, createItems, keyOf, readBatches } from './batches.ts';
import { EXIT, type ExitCode, Failure, reasonOf } from './failure.ts';
import { ColumnMap, visible } from './files/columns.ts';
import type { Entry, Item, Refusal } from './files/entry.ts';
import { readUsers } from './files/reader.ts';
import { Source } from './files/source.ts';
import { type Output, openOutput, openStandardError } from './output.ts';
import type { Progress } from './progress.ts';
import { describe, describeRefusal } from './refusal.ts';
import type { Stop } from './stop.ts';

/** What becomes of a line. `found` has the users that have its values, and `isActive` an inactive line's active user. */
type Outcome =
  | { readonly count: 'created' | 'exists'; readonly found?: Found; readonly isActive?: boolean }
  | { readonly count: 'refused'; readonly problem: Problem };

/** The users with the email and with the external id of a line. */
type Found = { readonly email?: User | undefined; readonly external_id?: User | undefined };

/** Users of a batch that are looked up or deactivated at the same time. */
const MAX_CALLS = 10;

/** Batches that are sent at the same time. */
const MAX_IN_PROGRESS = 4;

/** Names of members that are reported as not stored. */
const MAX_NAMES = 20;

/** Creates the users of a file. Running it again with the same file creates nothing twice. */
export async function importUsers(
  users: Users,
  options: OptionsOf<'import'>,
  progress: Progress,
  stop: Stop,
): Promise<ExitCode> {
  const { operand: file, rejected, existing, allowEmpty } = options;
  const source = new Source(file);
  const map = new ColumnMap(options.columns);
  const entries = readUsers(source, options, map, { command: 'import', member: 'email' }, stop.soon);
  // A file of another shape is reported before anything is written.
  const first = await entries.next().catch((error) => {
    throw stop.soon.aborted ? new Failure('Stopped before the first line.') : error;
  });
  const refusals = rejected === undefined ? openStandardError() : await openOutput(rejected, 'empty');
  const matches = existing === undefined ? undefined : await openOutput(existing, 'empty');
  // Without a reader of standard error, the import goes on and fails at the end.
  const writeRefusal = (text: string) =>
    rejected === undefined ? refusals.write(text).catch(() => {}) : refusals.write(text);
  const run = new ImportRun(users, writeRefusal, matches?.write);
  progress.start(() => ({ count: run.count, ...source.progress() }), rejected !== undefined);
  const whole = (async function* () {
    if (!first.done) yield first.value;
    yield* entries;
  })();
  const end = await run.readAll(whole, stop);
  // Standard error may lack a reader of messages only.
  const written = [run.counts.refused > 0 ? refusals : undefined, matches];
  const close = async () => void (await Promise.all(written.map((output) => output?.close())));
  const lost: unknown = stop.now.aborted ? undefined : await close().catch((error) => error);

  for (const message of [map.describeUnused(), run.describeNotStored()]) if (message) progress.say(message);
  const again = `Run the same command again${file === '-' ? ' with the same input' : ''} to continue.`;
  if (run.failure) progress.say(`${reasonOf(run.failure)}\nGave up at line ${end}. ${again}`);
  else if (end !== undefined) progress.say(`Stopped at line ${end}. ${again}`);
  else if (lost) progress.say(`${reasonOf(lost)}. ${again}`);
  else if (run.count === 0)
    progress.say(`The file has no lines.${allowEmpty ? '' : ' If that is right, add --allow-empty.'}`);
  const { created, exists, refused } = run.counts;
  if (run.active > 0) {
    const where = existing ? `listed in ${existing}` : 'listed by --existing <file>';
    progress.say(`Lines with "is_active": false whose users are active: ${run.active} (${where})`);
  }
  progress.say(`created ${created}, exists ${exists}, refused ${refused}`);
  if (run.failure instanceof Failure) return run.failure.exitCode;
  if (end !== undefined || lost) return EXIT.failed;
  if (run.count === 0 && !allowEmpty) return EXIT.wrongUse;
  return refused > 0 || run.active > 0 ? EXIT.incomplete : EXIT.done;
}

class ImportRun {
  readonly counts = { created: 0, exists: 0, refused: 0 };
  /** Inactive lines whose users are active. */
  active = 0;
  /** The reason to give up. */
  failure: unknown;
  readonly #users: Users;
  readonly #writeRefusal: Output['write'];
  readonly #writeExisting: Output['write'] | undefined;
  readonly #inProgress = new Map<Batch, Promise<void>>();
  readonly #notSent: Batch[] = [];
  readonly #notStored = new Map<string, { lines: number; readonly first: number }>();

  constructor(users: Users, writeRefusal: Output['write'], writeExisting: Output['write'] | undefined) {
    this.#users = users;
    this.#writeRefusal = writeRefusal;
    this.#writeExisting = writeExisting;
  }

  get count(): number {
    return this.counts.created + this.counts.exists + this.counts.refused;
  }

  /** Returns the first line that is in none of the counts; undefined at the end of the file. */
  async readAll(input: AsyncIterable<readonly Entry[]>, stop: Stop): Promise<number | undefined> {
    const stopped = new Promise((resolve) => stop.now.addEventListener('abort', resolve));
    let next: number | undefined = 1;
    try {
      for await (const batch of readBatches(input, (refusal) => this.#refuse(refusal))) {
        if (stop.soon.aborted || this.failure) break;
        this.#begin(batch);
        next = (batch.at(-1) ?? batch[0]).line + 1;
        if (this.#inProgress.size === MAX_IN_PROGRESS)
          await Promise.race([...this.#inProgress.values(), stopped]);
      }
      if (!stop.soon.aborted && !this.failure) next = undefined;
    } catch (error) {
      if (!stop.soon.aborted) this.failure ??= error;
    }
    await Promise.race([Promise.all(this.#inProgress.values()), stopped]);
    const unfinished = [...this.#notSent, ...this.#inProgress.keys()].map(([{ line }]) => line);
    const first = Math.min(...unfinished, next ?? Number.POSITIVE_INFINITY);
    return Number.isFinite(first) ? first : undefined;
  }

  /** The message that names what the service does not store; undefined if it stores everything. */
  describeNotStored(): string | undefined {
    const names = [...this.#notStored].map(
      ([name, { lines, first }]) =>
        `${visible(name)} (${lines} ${lines === 1 ? 'line' : 'lines'}, first line ${first})`,
    );
    return names.length === 0
      ? undefined
      : `The service does not store these members as given: ${names.join(', ')}`;
  }

  #begin(batch: Batch): void {
    const sending = this.#send(batch).then(
      () => void this.#inProgress.delete(batch),
      (error) => {
        this.#inProgress.delete(batch);
        this.#notSent.push(batch);
        this.failure ??= error;
      },
    );
    this.#inProgress.set(batch, sending);
  }

  async #send(batch: Batch): Promise<void> {
    const results = await createItems(this.#users, batch, keyOf);
    const outcomes: Outcome[] = [];
    while (outcomes.length < batch.length) {
      const items = batch.slice(outcomes.length, outcomes.length + MAX_CALLS);
      const decisions = items.map((item, n) =>
        this.#decide(item, results[outcomes.length + n] as BatchResult),
      );
      outcomes.push(...(await Promise.all(decisions)));
    }
    for (const [index, item] of batch.entries()) {
      const result = results[index] as BatchResult;
      await this.#settle(item, outcomes[index] as Outcome);
      if (result.status === 201) this.#noteMembers(item.line, item.user, result.user);
    }
  }

  async #decide({ user }: Item, result: BatchResult): Promise<Outcome> {
    const isInactive = (user as { is_active?: unknown }).is_active === false;
    if (result.status === 409) return this.#decideTaken(user, isInactive, result.problem as Problem);
    if (result.status !== 201) return { count: 'refused', problem: result.problem as Problem };
    if (!isInactive || !result.user.is_active) return { count: 'created' };
    try {
      const left = await this.#deactivate(result.user.id);
      const found = { email: left, ...(left?.external_id !== undefined && { external_id: left }) };
      return { count: 'created', found, isActive: left.is_active };
    } catch (error) {
      if (isProblem(error, 'not_found_error')) return { count: 'refused', problem: error.problem };
      throw error;
    }
  }

  /** The user afterwards. A user that another caller has changed meanwhile is left as it is. */
  async #deactivate(id: string): Promise<User> {
    try {
      return await this.#users.change(id, { is_active: false }, { ifVersion: '"1"' });
    } catch (error) {
      if (isProblem(error, 'precondition_failed_error')) return this.#users.get(id);
      throw error;
    }
  }

  /** A line exists unless its values belong to two users, or its email to a user with another external id. */
  async #decideTaken(
    { email, external_id: own }: NewUser,
    isInactive: boolean,
    problem: Problem,
  ): Promise<Outcome> {
    if (own == null && !isInactive && !this.#writeExisting) return { count: 'exists' };
    const byId = own == null ? undefined : await this.#users.findByExternalId(own);
    const byEmail = byId && isSameEmail(byId.email, email) ? byId : await this.#users.findByEmail(email);
    const user = byEmail ?? byId;
    const isOther =
      byEmail && (byId ? byId.id !== byEmail.id : own != null && byEmail.external_id !== undefined);
    if (!user || isOther) return { count: 'refused', problem };
    return {
      count: 'exists',
      found: { email: byEmail, external_id: byId },
      isActive: isInactive && user.is_active,
    };
  }

  async #settle(item: Item, outcome: Outcome): Promise<void> {
    if (outcome.count === 'refused') {
      await this.#refuse({ ...item, problem: outcome.problem });
      return;
    }
    const { found, isActive } = outcome;
    if (outcome.count === 'exists' || isActive) {
      const taken = { email: found?.email?.id, external_id: found?.external_id?.id };
      const entry = { ...describe(item), taken, ...(isActive && { is_active: true }) };
      await this.#writeExisting?.(`${JSON.stringify(entry)}\n`);
    }
    if (isActive) this.active += 1;
    this.counts[outcome.count] += 1;
  }

  async #refuse(refusal: Refusal): Promise<void> {
    await this.#writeRefusal(describeRefusal(refusal));
    this.counts.refused += 1;
  }

  #noteMembers(line: number, sent: NewUser, stored: User): void {
    for (const name of notStored(sent, stored)) {
      const entry = this.#notStored.get(name) ?? { lines: 0, first: line };
      entry.lines += 1;
      if (this.#notStored.size < MAX_NAMES || this.#notStored.has(name)) this.#notStored.set(name, entry);
    }
  }
}

/** The members that the service ignores, or stores with another value. The state is kept by a second request. Null means the same as an absent member. */
function notStored(sent: NewUser, stored: User): readonly string[] {
  const values = stored as Readonly<Record<string, unknown>>;
  return Object.entries(sent)
    .filter(([name, value]) => name !== 'is_active' && value !== null && values[name] !== value)
    .map(([name]) => name);
}
