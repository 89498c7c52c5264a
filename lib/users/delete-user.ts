import { sql } from 'kysely';
import { AUTHOR_TYPES, type Author, recorded } from '../changes/recording.ts';
import type { Preconditions } from '../http/preconditions.ts';
import type { Statements } from '../postgres/index.ts';
import { isOfGivenVersions, VERSION_TYPES, type VersionTexts, versionTexts } from './write-preconditions.ts';

type Given = Author & VersionTexts & { readonly id: string };

/** Deletes a user. Resolves with whether there was one, in a version that the preconditions allow. */
export function deletingUser(statements: Statements) {
  const remove = statements.batchedWrite<Given, { id: string }>(
    'DELETE users',
    { id: 'uuid', ...VERSION_TYPES, ...AUTHOR_TYPES },
    // A deletion has the version after the last one.
    (given) => sql`with ${given}, written as (
      delete from users using given where users.id = given.id and ${isOfGivenVersions}
      returning users.id, version + 1 as version, 0 as changed, clock_timestamp() as moment
    ), ${recorded('deleted')}
    select id from written`,
  );

  return async (id: string, preconditions: Preconditions, author: Author): Promise<boolean> =>
    (await remove({ id, ...versionTexts(preconditions), ...author })) !== undefined;
}
