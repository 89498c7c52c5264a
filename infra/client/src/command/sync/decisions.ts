import type { Problem } from '../../problem.ts';
import { isSameEmail, type User } from '../../users.ts';
import type { CommandRun } from '../arguments.ts';
import { conflict, taken } from '../refusal.ts';
import type { Tasks } from '../tasks.ts';
import { faultOfKey, findByKey } from '../user-keys.ts';
import type { Line, SyncLines, Values } from './lines.ts';

/** What the steps of a run share. */
export type SyncRun = CommandRun<'sync'> & { readonly lines: SyncLines; readonly tasks: Tasks };

/** What becomes of a user by its line: a change, nothing if it is equal, or a problem of the line. */
export type Decision = { readonly change?: Values | undefined; readonly problem?: Problem };

export function decideChange({ options, lines }: SyncRun, { values }: Line, user: User): Decision {
  const { by, adopt, reactivate } = options;
  const own = values.external_id;
  // A user keeps its external id.
  if (by === 'email' && own != null && own !== user.external_id && (user.external_id !== undefined || !adopt))
    return { problem: conflict('external_id', 'must be that of the user with this email') };
  const wanted: Values = { ...(reactivate && { is_active: true }), ...values };
  const names = lines.table.findDifferences(wanted, user) as readonly (keyof Values)[];
  return names.length > 0 ? { change: Object.fromEntries(names.map((name) => [name, wanted[name]])) } : {};
}

/** The user that has the other value of a line by which users are unique, if the line gets that user or may get the value. */
export async function findHolder(
  { users, options: { by, adopt }, lines }: SyncRun,
  { values }: Line,
): Promise<{ readonly user?: User; readonly problem?: Problem }> {
  const other = by === 'email' ? 'external_id' : 'email';
  const value = values[other];
  const user = faultOfKey(other, value) ? undefined : await findByKey(users, other, String(value));
  if (!user) return {};
  if (user[by] === undefined && adopt && user.is_active) return { user };
  // Another line may free the value.
  const position = lines.find(user);
  return position !== undefined && !lines.isSettled(position) ? {} : { problem: taken(other) };
}

/** Whether an active user has the email of a line, and no external id. */
export function isAdoptable(user: User, { values }: Line): boolean {
  return user.is_active && user.external_id === undefined && isSameEmail(user.email, String(values.email));
}
