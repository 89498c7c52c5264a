import { sql } from 'kysely';
import { type Author, recorded } from '../changes/recording.ts';
import type { Preconditions } from '../http/preconditions.ts';
import { prepare } from '../postgres/prepared.ts';
import type { WriteContext } from './write-context.ts';
import { isOfVersions, type Versions, versionsFor } from './write-preconditions.ts';

type Given = Author & Versions & { readonly id: string };

/** Deletes a user. Resolves with whether there was one, in a version that the preconditions allow. */
export function deletingUser({ statements }: WriteContext) {
  const remove = prepare<Given, unknown>(
    statements,
    'DELETE users',
    // A deletion has the version after the last one.
    (given) => sql`with written as (
      delete from users where id = ${given.id} and ${isOfVersions(given)}
      returning id, version + 1 as version, 0 as changed, clock_timestamp() as moment
    ), ${recorded('deleted', given)}
    select id from written`,
    'write',
  );

  return async (id: string, preconditions: Preconditions, author: Author): Promise<boolean> => {
    const rows = await remove({ id, ...versionsFor(preconditions), ...author });
    return rows.length > 0;
  };
}
