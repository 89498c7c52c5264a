import { isProblem, type Problem } from '../problem.ts';
import { type BatchResult, isSameEmail, type NewUser, type User, type Users } from '../users.ts';
import type { CommandRun } from './arguments.ts';
import { type Batch, createItems, keyOf, readBatches } from './batches.ts';
import { EXIT, type ExitCode, Failure, reasonOf } from './failure.ts';
import { visible } from './files/columns.ts';
import type { Item, Refusal } from './files/entry.ts';
import { UserFile } from './files/user-file.ts';
import { openOutput } from './output.ts';
import { describe, openRefusals } from './refusal.ts';
import { Tasks } from './tasks.ts';
import { splitList } from './user-keys.ts';

/** What becomes of a line. `taken` has the ids of the users with its values; `isActive` is of an inactive line's user. */
type Outcome =
  | { readonly count: 'created' | 'exists'; readonly taken?: Taken; readonly isActive?: boolean }
  | { readonly count: 'refused'; readonly problem: Problem };
type Taken = { readonly email?: string | undefined; readonly external_id?: string | undefined };

/** Users of a batch that are looked up or deactivated at the same time. */
const MAX_CALLS = 10;
/** Batches that are sent at the same time. */
const MAX_IN_PROGRESS = 4;
/** Names of members that are reported as not stored. */
const MAX_NAMES = 20;

/** Creates the users of a file. Running it again with the same file creates nothing twice. */
export async function importUsers(run: CommandRun<'import'>): Promise<ExitCode> {
  const { users, options, progress, stop } = run;
  const { operand: file, rejected, existing, allowEmpty } = options;
  const input = new UserFile(options, { command: 'import', signal: stop.soon, member: 'email' });
  // A file of another shape is reported before anything is written.
  const entries = await input.begin().catch((error) => {
    throw stop.soon.aborted ? new Failure('Stopped before the first line.') : error;
  });
  const refusals = await openRefusals(rejected);
  const matches = existing === undefined ? undefined : await openOutput(existing, 'empty');
  const tasks = new Tasks(MAX_IN_PROGRESS, stop.soon);
  const counts = { created: 0, exists: 0, refused: 0 };
  const count = () => counts.created + counts.exists + counts.refused;
  /** Inactive lines whose users are active. */
  let active = 0;
  /** The line after the last one that is sent; undefined at the end of the file. */
  let next: number | undefined = 1;
  const unfinished = new Set<Batch>();
  const notStored = new Map<string, { lines: number; readonly first: number }>();

  async function sendAll(): Promise<void> {
    try {
      for await (const batch of readBatches(entries, refuse)) {
        if (tasks.isEnded) break;
        unfinished.add(batch);
        next = (batch.at(-1) ?? batch[0]).line + 1;
        await tasks.start(() => send(batch));
      }
      if (!tasks.isEnded) next = undefined;
    } catch (error) {
      if (!stop.soon.aborted) tasks.failure ??= error;
    }
    await tasks.end();
  }

  async function send(batch: Batch): Promise<void> {
    const results = await createItems(users, batch, keyOf);
    const outcomes: Outcome[] = [];
    for (const some of splitList([...batch.entries()], MAX_CALLS)) {
      const decisions = some.map(([index, item]) =>
        decideOutcome(users, item, results[index] as BatchResult, matches !== undefined),
      );
      outcomes.push(...(await Promise.all(decisions)));
    }
    for (const [index, item] of batch.entries()) {
      const result = results[index] as BatchResult;
      await settle(item, outcomes[index] as Outcome);
      if (result.status === 201) noteMembers(item.line, item.user, result.user);
    }
    unfinished.delete(batch);
  }

  async function settle(item: Item, outcome: Outcome): Promise<void> {
    if (outcome.count === 'refused') return refuse({ ...item, problem: outcome.problem });
    const { taken, isActive } = outcome;
    if (outcome.count === 'exists' || isActive) {
      const entry = { ...describe(item), taken: taken ?? {}, ...(isActive && { is_active: true }) };
      await matches?.write(`${JSON.stringify(entry)}\n`);
    }
    if (isActive) active += 1;
    counts[outcome.count] += 1;
  }

  async function refuse(refusal: Refusal): Promise<void> {
    await refusals.write(refusal);
    counts.refused += 1;
  }

  /** Null means the same as an absent member. The state is kept by a second request. */
  function noteMembers(line: number, sent: NewUser, stored: Readonly<Record<string, unknown>>): void {
    for (const [name, value] of Object.entries(sent)) {
      if (name === 'is_active' || value === null || value === stored[name]) continue;
      const entry = notStored.get(name) ?? { lines: 0, first: line };
      entry.lines += 1;
      if (notStored.size < MAX_NAMES || notStored.has(name)) notStored.set(name, entry);
    }
  }

  progress.start(() => ({ count: count(), ...input.progress() }), rejected !== undefined);
  const stopped = new Promise((resolve) => stop.now.addEventListener('abort', resolve));
  await Promise.race([sendAll(), stopped]);
  const { failure } = tasks;
  const places = [...unfinished].map(([{ line }]) => line);
  /** The first line that is in none of the counts. */
  const end = next === undefined && places.length === 0 ? undefined : Math.min(...places, next ?? Infinity);
  const close = async () => void (await Promise.all([refusals.close(), matches?.close()]));
  const lost: unknown = stop.now.aborted ? undefined : await close().catch((error) => error);

  const unused = input.describeUnused();
  if (unused) progress.say(unused);
  const names = [...notStored].map(
    ([name, { lines, first }]) =>
      `${visible(name)} (${lines} ${lines === 1 ? 'line' : 'lines'}, first line ${first})`,
  );
  if (names.length > 0)
    progress.say(`The service does not store these members as given: ${names.join(', ')}`);
  const again = `Run the same command again${file === '-' ? ' with the same input' : ''} to continue.`;
  if (failure) progress.say(`${reasonOf(failure)}\nGave up at line ${end}. ${again}`);
  else if (end !== undefined) progress.say(`Stopped at line ${end}. ${again}`);
  else if (lost) progress.say(`${reasonOf(lost)}. ${again}`);
  else if (count() === 0)
    progress.say(`The file has no lines.${allowEmpty ? '' : ' If that is right, add --allow-empty.'}`);
  if (active > 0) {
    const where = existing ? `listed in ${existing}` : 'listed by --existing <file>';
    progress.say(`Lines with "is_active": false whose users are active: ${active} (${where})`);
  }
  progress.say(`created ${counts.created}, exists ${counts.exists}, refused ${counts.refused}`);
  if (failure instanceof Failure) return failure.exitCode;
  if (end !== undefined || lost) return EXIT.failed;
  if (count() === 0 && !allowEmpty) return EXIT.wrongUse;
  return counts.refused > 0 || active > 0 ? EXIT.incomplete : EXIT.done;
}

/** Deactivates the user of an inactive line, and finds the users with the values of a line that exists. */
async function decideOutcome(
  users: Users,
  { user }: Item,
  result: BatchResult,
  areMatchesListed: boolean,
): Promise<Outcome> {
  const isInactive = (user as { is_active?: unknown }).is_active === false;
  if (result.status === 409)
    return isInactive || areMatchesListed || user.external_id != null
      ? findTaken(users, user, isInactive, result.problem as Problem)
      : { count: 'exists' };
  if (result.status !== 201) return { count: 'refused', problem: result.problem as Problem };
  if (!isInactive || !result.user.is_active) return { count: 'created' };
  try {
    const { id, external_id, is_active } = await deactivate(users, result.user.id);
    const taken = { email: id, external_id: external_id === undefined ? undefined : id };
    return { count: 'created', taken, isActive: is_active };
  } catch (error) {
    if (isProblem(error, 'not_found_error')) return { count: 'refused', problem: error.problem };
    throw error;
  }
}

/** The user afterwards. A user that another caller has changed meanwhile is left as it is. */
async function deactivate(users: Users, id: string): Promise<User> {
  try {
    return await users.change(id, { is_active: false }, { ifVersion: '"1"' });
  } catch (error) {
    if (isProblem(error, 'precondition_failed_error')) return users.get(id);
    throw error;
  }
}

/** A line exists unless its values belong to two users, or its email to a user with another external id. */
async function findTaken(
  users: Users,
  { email, external_id: own }: NewUser,
  isInactive: boolean,
  problem: Problem,
): Promise<Outcome> {
  const byId = own == null ? undefined : await users.findByExternalId(own);
  const byEmail = byId && isSameEmail(byId.email, email) ? byId : await users.findByEmail(email);
  const user = byEmail ?? byId;
  const isOther =
    byEmail && (byId ? byId.id !== byEmail.id : own != null && byEmail.external_id !== undefined);
  if (!user || isOther) return { count: 'refused', problem };
  const taken = { email: byEmail?.id, external_id: byId?.id };
  return { count: 'exists', taken, isActive: isInactive && user.is_active };
}
