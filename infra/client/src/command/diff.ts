import { USER_FORMATS } from '../checks.ts';
import type { User, Users } from '../users.ts';
import type { CommandRun } from './arguments.ts';
import { EXIT, type ExitCode, Failure } from './failure.ts';
import { type Entry, faultsOf, nameOf, type Place } from './files/entry.ts';
import { UserFile } from './files/user-file.ts';
import { instantOf, LineTable, type Values } from './line-table.ts';
import { openStandardOutput } from './output.ts';
import { faultOfKey, findByKey, listByIds, MAX_IDS, PAGE, splitList, type UserKey } from './user-keys.ts';

/** A user of the file, and the member by which it is matched. */
type FileUser = Place & { readonly position: number; readonly by: UserKey; readonly values: Values };
const KEYS = ['id', 'external_id', 'email'] as const;
const MEMBERS = Object.keys(USER_FORMATS);

/** Single users that are read at the same time. */
const MAX_CALLS = 10;

/**
 * Compares the lines of a file with the users of the service. The lines are kept as digests while the list is read. A
 * difference counts if it is still there when the user is read again at the end.
 */
export async function diffUsers({ users, options, progress, stop }: CommandRun<'diff'>): Promise<ExitCode> {
  const signal = stop.soon;
  const { operand: file, subset, allowEmpty, by: wanted } = options;
  const input = new UserFile(options, { command: 'diff', signal, member: wanted });
  const table = new LineTable(MEMBERS);
  /** By position: the line at which a user begins, and whether it is equal to its user. */
  const [lines, areEqual]: [number[], boolean[]] = [[], []];
  let [isList, count] = [false, 0];
  const refuseTwice = (...both: readonly [number, number]) => {
    const [one, other] = both.map((at) => `${lines[at]}${isList ? ` (index ${at - 1})` : ''}`);
    throw new Failure(`Lines ${one} and ${other} are of one user`, EXIT.wrongUse);
  };
  for await (const entries of input.read()) {
    for (const { line, index, position, by, values } of entries.map((entry) => toFileUser(entry, wanted))) {
      lines[position] = line;
      isList = index !== undefined;
      const earlier = table.find(by, values[by]);
      if (earlier !== undefined) refuseTwice(earlier, position);
      table.add(position, by, values);
    }
  }
  if (table.size === 0 && !allowEmpty)
    throw new Failure(`${file} has no lines. If that is right, add --allow-empty.`, EXIT.wrongUse);

  const find = (user: User) =>
    KEYS.map((by) => table.find(by, user[by])).filter((position) => position !== undefined);
  const counts = { changed: 0, missing: 0, additional: 0 };
  const unmatched: string[] = [];
  const output = openStandardOutput();
  const report = (difference: keyof typeof counts, user: object, members?: readonly string[]) => {
    counts[difference] += 1;
    return output.write(`${JSON.stringify({ ...user, difference, members })}\n`);
  };
  progress.start(() => ({ count }), !process.stdout.isTTY);
  for await (const user of users.list({ limit: PAGE }, { signal })) {
    count += 1;
    const [first, second] = find(user);
    if (first !== undefined && second !== undefined) refuseTwice(first, second);
    if (first !== undefined) areEqual[first] = table.isEqual(first, user);
    else if (!subset) unmatched.push(user.id);
  }
  for await (const entries of input.read()) {
    const doubtful = entries.filter(({ position }) => !areEqual[position]);
    for (const some of splitList(doubtful, MAX_IDS)) {
      const asked = some.map((entry) => toFileUser(entry, wanted));
      const found = await readAgain(users, asked, signal);
      for (const { line, index, position, by, values } of asked) {
        const user = found.get(position);
        const members = user && table.findDifferences(values, user);
        if (members?.length === 0) continue;
        await report(members ? 'changed' : 'missing', { line, index, [by]: values[by] }, members);
      }
    }
  }
  for (const ids of splitList(unmatched, MAX_IDS))
    for await (const user of listByIds(users, ids, { signal }))
      if (find(user).length === 0) await report('additional', { id: user.id });
  await output.close();
  input.refuseChange();
  const unused = input.describeUnused();
  if (unused) progress.say(unused);
  const { changed, missing, additional } = counts;
  const equal = table.size - changed - missing;
  progress.say(`equal ${equal}, changed ${changed}, missing ${missing}, additional ${additional}`);
  return changed + missing + additional > 0 ? EXIT.incomplete : EXIT.done;
}

/** @throws {Failure} for an entry that cannot be compared */
function toFileUser(entry: Entry, wanted: UserKey | undefined): FileUser {
  const values: Values = entry.user ?? {};
  const by = (wanted ? [wanted] : KEYS).find((key) => values[key] != null);
  const fault = 'problem' in entry ? faultsOf(entry.problem) : findFault(values, by, wanted);
  if (!by || fault) throw new Failure(`${nameOf(entry)} is not a user: ${fault}`, EXIT.wrongUse);
  return { ...entry, by, values };
}

/** Why a line cannot be compared; undefined if it can. */
function findFault(values: Values, by: UserKey | undefined, wanted: UserKey | undefined): string | undefined {
  if (!by) return wanted ? `${wanted} must be present` : 'must have an id, an external_id or an email';
  const fault = faultOfKey(by, values[by]);
  if (fault) return `${by} ${fault}`;
  const time = MEMBERS.find(
    (name) =>
      USER_FORMATS[name] === 'date-time' && values[name] != null && instantOf(values[name]) === undefined,
  );
  return time && `${time} must be a time with an offset`;
}

/** Reads these users, by position. */
async function readAgain(
  users: Users,
  asked: readonly FileUser[],
  signal: AbortSignal,
): Promise<Map<number, User>> {
  const found = new Map<number, User>();
  const byId = new Map(
    asked
      .filter(({ by }) => by === 'id')
      .map(({ position, values }) => [String(values.id).toLowerCase(), position]),
  );
  for await (const user of listByIds(users, [...byId.keys()], { signal }))
    found.set(byId.get(user.id) ?? 0, user);
  const others = asked.filter(({ by }) => by !== 'id');
  for (const some of splitList(others, MAX_CALLS)) {
    const calls = some.map(async ({ position, by, values }) => {
      const user = await findByKey(users, by, String(values[by]), { signal });
      if (user) found.set(position, user);
    });
    await Promise.all(calls);
  }
  return found;
}
