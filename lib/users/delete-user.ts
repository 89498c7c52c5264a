import { sql } from 'kysely';
import { prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';
import type { Preconditions } from '../preconditions.ts';
import { isOfVersions, type Versions, versionsFor } from './versions.ts';

/** Deletes a user; resolves with whether there was one, of a version that the preconditions allow. */
export function deletingUser(statements: Statements) {
  const remove = prepare<Versions & { readonly id: string }, unknown>(
    statements,
    'DELETE users',
    (given) => sql`delete from users where id = ${given.id} and ${isOfVersions(given)} returning id`,
  );

  return async (id: string, preconditions: Preconditions): Promise<boolean> =>
    (await remove({ id, ...versionsFor(preconditions) })).length > 0;
}
