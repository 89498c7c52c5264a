import type { User } from '../../users.ts';
import type { Output } from '../output.ts';
import { listByIds, MAX_IDS, PAGE } from '../user-keys.ts';
import { type Decision, decideChange, findHolder, type SyncRun } from './decisions.ts';
import type { Line } from './lines.ts';

/**
 * Compares the users of the service with the lines. Returns the number of active users of which a limit may be a percentage,
 * the ids of those without a line, and the number of inactive users whose lines have no state.
 */
export async function compareUsers({ users, options, lines, stop }: SyncRun) {
  const { by, prefix = '', reactivate, deactivateMissing } = options;
  let [active, inactive] = [0, 0];
  const missing: string[] = [];
  for await (const user of users.list({ limit: PAGE }, { signal: stop.soon })) {
    const isCounted = user.is_active && (by === 'email' || user.external_id?.startsWith(prefix) === true);
    if (isCounted) active += 1;
    const position = lines.find(user);
    if (position === undefined && isCounted && deactivateMissing) missing.push(user.id);
    if (position === undefined || lines.isSettled(position)) continue;
    const isLeft = !user.is_active && !lines.table.hasMember(position, 'is_active');
    if (isLeft && !reactivate) inactive += 1;
    if (lines.table.isEqual(position, user) && !(isLeft && reactivate)) lines.noteEqual(position);
    else lines.changed.set(position, user.id);
  }
  return { active, inactive, missing: lines.unreadable ? [] : missing };
}

/** Refuses what cannot be written, and writes each intended write to `planned`. Returns the numbers of these writes. */
export async function planWrites(run: SyncRun, missing: readonly string[], planned: Output | undefined) {
  const { users, options, lines, tasks } = run;
  const intended = { created: 0, updated: 0, deactivated: 0 };

  async function note(write: { readonly action: string; readonly [name: string]: unknown }): Promise<void> {
    const { action } = write;
    intended[action === 'create' ? 'created' : action === 'deactivate' ? 'deactivated' : 'updated'] += 1;
    await planned?.write(`${JSON.stringify(write)}\n`);
  }

  async function planLine(line: Line, user: User | undefined): Promise<void> {
    const { problem, change }: Decision = user ? decideChange(run, line, user) : { change: line.values };
    if (problem) return lines.refuse({ ...line, problem });
    if (!change) return lines.noteEqual(line.position);
    const state = change.is_active;
    const action = !user ? 'create' : state === undefined ? 'update' : state ? 'reactivate' : 'deactivate';
    const place = { line: line.line, index: line.index, id: user?.id };
    await note({ ...place, action, members: Object.keys(change) });
  }

  async function planChanged(some: readonly Line[]): Promise<void> {
    const ids = some.map(({ position }) => lines.changed.get(position) ?? '');
    const found = new Map<string, User>();
    for await (const user of listByIds(users, ids)) found.set(user.id, user);
    for (const [index, line] of some.entries()) await planLine(line, found.get(ids[index] ?? ''));
  }

  async function planNew(line: Line): Promise<void> {
    const { problem, user } = await findHolder(run, line);
    await (problem ? lines.refuse({ ...line, problem }) : planLine(line, user));
  }

  let changed: Line[] = [];
  for await (const line of lines.toWrite((refusal) => lines.refuse(refusal))) {
    if (!lines.changed.has(line.position)) {
      // The other new lines are not read about: each becomes a create.
      const isDeactivated = options.adopt && line.values.is_active === false;
      if (planned || isDeactivated) await tasks.start(() => planNew(line));
    } else if (changed.push(line) === MAX_IDS) {
      const some = changed;
      changed = [];
      await tasks.start(() => planChanged(some));
    }
  }
  await tasks.start(() => planChanged(changed));
  await tasks.finish();
  for (const id of missing) await note({ id, action: 'deactivate', members: ['is_active'] });
  return intended;
}
