import { USER_FORMATS } from '../checks.ts';
import { foldEmail, type User, type Users } from '../users.ts';
import type { OptionsOf } from './arguments.ts';
import { DigestTable } from './digest-table.ts';
import { EXIT, type ExitCode, Failure } from './failure.ts';
import { ColumnMap } from './files/columns.ts';
import { type Entry, faultsOf, nameOf, type Place } from './files/entry.ts';
import { readUsers } from './files/reader.ts';
import { Source } from './files/source.ts';
import { hash, membersOf } from './hash.ts';
import { openStandardOutput } from './output.ts';
import type { Progress } from './progress.ts';
import type { Stop } from './stop.ts';
import { faultOfKey, findByKey, type UserKey } from './user-keys.ts';

type Values = Readonly<Record<string, unknown>>;
/** A user of the file, and the member by which it is matched. */
type FileUser = Place & { readonly position: number; readonly by: UserKey; readonly values: Values };
const KEYS = ['id', 'external_id', 'email'] as const;
const MEMBERS = Object.keys(USER_FORMATS);

/** Users that are read again in one request, and single users that are read at the same time. */
const MAX_IDS = 100;
const MAX_CALLS = 10;
const PAGE = 1000;

/**
 * Compares the lines of a file with the users of the service. The lines are kept as digests while the list is read. A
 * difference counts if it is still there when the user is read again at the end.
 */
export async function diffUsers(
  users: Users,
  options: OptionsOf<'diff'>,
  progress: Progress,
  { soon: signal }: Stop,
): Promise<ExitCode> {
  const { operand: file, subset, allowEmpty, by: wanted } = options;
  const source = new Source(file);
  if (!source.stats.isFile())
    throw new Failure(`${file} must be a file, because it is read twice`, EXIT.wrongUse);
  const map = new ColumnMap(options.columns);
  const read = () =>
    readKeys(readUsers(source, options, map, { command: 'diff', member: wanted }, signal), wanted);
  // Numbers instead of users, so that a million lines fit into the memory. The digest of a line that is equal becomes NaN.
  const [positions, keys] = [new DigestTable(), new Set<UserKey>()];
  const [lines, members, digests]: [number[], number[], number[]] = [[], [], []];
  let [isList, count] = [false, 0];
  const refuseTwice = (...both: readonly [number, number]) => {
    const [one, other] = both.map((at) => `${lines[at]}${isList ? ` (index ${at - 1})` : ''}`);
    throw new Failure(`Lines ${one} and ${other} are of one user`, EXIT.wrongUse);
  };
  for await (const some of read()) {
    for (const { line, index, position, by, values } of some) {
      lines[position] = line;
      isList = index !== undefined;
      const key = keyOf(by, values);
      const earlier = positions.get(key);
      if (earlier !== undefined) refuseTwice(earlier, position);
      keys.add(by);
      positions.set(key, position);
      members[position] = membersOf(MEMBERS, values);
      digests[position] = digestOf(values);
    }
  }
  if (positions.size === 0 && !allowEmpty)
    throw new Failure(`${file} has no lines. If that is right, add --allow-empty.`, EXIT.wrongUse);

  const find = (user: User) =>
    [...keys]
      .map((by) => (user[by] === undefined ? undefined : positions.get(keyOf(by, user))))
      .filter((position) => position !== undefined);
  const counts = { changed: 0, missing: 0, additional: 0 };
  const unmatched: string[] = [];
  const output = openStandardOutput();
  progress.start(() => ({ count }), !process.stdout.isTTY);
  for await (const user of users.list({ limit: PAGE }, { signal })) {
    count += 1;
    const [first, second] = find(user);
    if (first !== undefined && second !== undefined) refuseTwice(first, second);
    if (first !== undefined)
      digests[first] = digests[first] === digestOf(user, members[first]) ? Number.NaN : -1;
    else if (!subset) unmatched.push(user.id);
  }
  for await (const some of read()) {
    const doubtful = some.filter(({ position }) => !Number.isNaN(digests[position]));
    for (let first = 0; first < doubtful.length; first += MAX_IDS) {
      const asked = doubtful.slice(first, first + MAX_IDS);
      const found = await readAgain(users, asked, signal);
      for (const { line, index, position, by, values } of asked) {
        const entry = compare(values, found.get(position));
        if (!entry) continue;
        counts[entry.difference] += 1;
        await output.write(`${JSON.stringify({ line, index, [by]: values[by], ...entry })}\n`);
      }
    }
  }
  for (let first = 0; first < unmatched.length; first += MAX_IDS) {
    const ids = unmatched.slice(first, first + MAX_IDS);
    for await (const user of users.list({ ids, limit: MAX_IDS }, { signal })) {
      if (find(user).length > 0) continue;
      counts.additional += 1;
      await output.write(`${JSON.stringify({ id: user.id, difference: 'additional' })}\n`);
    }
  }
  await output.close();
  source.refuseChange();
  const unused = map.describeUnused();
  if (unused) progress.say(unused);
  const { changed, missing, additional } = counts;
  const equal = positions.size - changed - missing;
  progress.say(`equal ${equal}, changed ${changed}, missing ${missing}, additional ${additional}`);
  return changed + missing + additional > 0 ? EXIT.incomplete : EXIT.done;
}

/** The users of the file. The second time, only those that may differ are looked at. */
async function* readKeys(
  entries: AsyncIterable<readonly Entry[]>,
  wanted: UserKey | undefined,
): AsyncGenerator<readonly FileUser[], void> {
  for await (const some of entries) {
    yield some.map(({ user = {}, ...entry }) => {
      const values: Values = user;
      const by = (wanted ? [wanted] : KEYS).find((key) => values[key] != null);
      const fault = 'problem' in entry ? faultsOf(entry.problem) : findFault(values, by, wanted);
      if (!by || fault) throw new Failure(`${nameOf(entry)} is not a user: ${fault}`, EXIT.wrongUse);
      return { ...entry, by, values };
    });
  }
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
    asked.filter(({ by }) => by === 'id').map(({ position, values }) => [textOf('id', values), position]),
  );
  for await (const user of users.list({ ids: [...byId.keys()], limit: MAX_IDS }, { signal }))
    found.set(byId.get(user.id) ?? 0, user);
  const others = asked.filter(({ by }) => by !== 'id');
  for (let first = 0; first < others.length; first += MAX_CALLS) {
    const calls = others.slice(first, first + MAX_CALLS).map(async ({ position, by, values }) => {
      const user = await findByKey(users, by, String(values[by]), { signal });
      if (user) found.set(position, user);
    });
    await Promise.all(calls);
  }
  return found;
}

/** Undefined if the user has the values of the line. */
function compare(values: Values, user: User | undefined) {
  if (!user) return { difference: 'missing' } as const;
  const other: Values = user;
  const members = MEMBERS.filter(
    (name) => Object.hasOwn(values, name) && comparable(name, values[name]) !== comparable(name, other[name]),
  );
  return members.length > 0 ? ({ difference: 'changed', members } as const) : undefined;
}

/** A text that is the same for each form of a value: ids in any case, times as instants, and null for an absent member. */
function comparable(name: string, value: unknown): string {
  const format = USER_FORMATS[name];
  if (typeof value !== 'string') return JSON.stringify(value ?? null);
  if (format === 'uuid') return value.toLowerCase();
  return (format === 'date-time' && instantOf(value)) || JSON.stringify(value);
}

/** The milliseconds of a time, and its digits beyond them; undefined for what is not the same instant in each time zone. */
function instantOf(value: unknown): string | undefined {
  const time = typeof value === 'string' && OFFSET.test(value) ? Date.parse(value) : Number.NaN;
  const [, digits = ''] = /:\d\d\.\d{3}(\d*?)0*(?!\d)/.exec(String(value)) ?? [];
  return Number.isNaN(time) ? undefined : `${time}.${digits}`;
}

/** The end of a time: an offset in a form that JavaScript reads, after the minutes or seconds. */
const OFFSET =
  /:\d\d(?:\.\d+)?(?:\s*[AP]M)?\s*(?:Z|UTC?|GMT|[ECMP][SD]T|(?:UTC?|GMT)?[+-]\d{1,4}(?::?\d\d)?)\s*(?:\(.*\)\s*)?$/i;

/** A digest of the member by which a line is matched. */
function keyOf(by: UserKey, values: Values): number {
  return hash(`${by}:${textOf(by, values)}`);
}

function textOf(by: UserKey, values: Values): string {
  const value = String(values[by]);
  return by === 'id' ? value.toLowerCase() : by === 'email' ? foldEmail(value) : value;
}

function digestOf(values: Values, members = membersOf(MEMBERS, values)): number {
  let text = '';
  for (const [bit, name] of MEMBERS.entries())
    if (members & (1 << bit)) text += `${comparable(name, values[name])}\n`;
  return hash(text);
}
