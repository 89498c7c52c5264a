import { sql } from 'kysely';
import { type Statements, violatesUnique } from '../postgres/index.ts';
import { foldedEmail } from './folded-email.ts';
import { UNIQUE_NAMES, type UniqueName, valuesTaken } from './refusals.ts';

/** The values that a write of the user `id` sets. Null sets none. */
type GivenValues = { readonly id: string } & Readonly<Record<UniqueName, string | null>>;

/** Whether a unique index refused a write for a value of a user, so that two racing writers cannot both win. */
export function isTaken(fault: unknown): boolean {
  return violatesUnique(fault, 'users_email_key') || violatesUnique(fault, 'users_external_id_key');
}

/** Refuses a write for the values that other users have. */
export function refusingTakenValues(statements: Statements) {
  const look = statements.single<GivenValues, Readonly<Record<UniqueName, boolean>>>(
    'SELECT users',
    ({ id, email, external_id }) => sql`
      select
        exists (
          select from users where lower(upper(users.email)) = ${foldedEmail(email)} and users.id <> ${id}::uuid
        ) as email,
        exists (
          select from users where users.external_id = ${external_id} and users.id <> ${id}::uuid
        ) as external_id`,
  );

  /** Refuses the values that belong to other users now. Resolves if there are none any more: the write is then sent again. */
  async function refuseTakenValues({ id, email, external_id }: GivenValues): Promise<void> {
    const [taken] = await look({ id, email, external_id });
    const names = UNIQUE_NAMES.filter((name) => taken?.[name]);
    if (names.length > 0) throw valuesTaken(names);
  }

  /** Sends a write until it is stored or refused. The time limit of the request's statements ends the loop. */
  function writeUnlessTaken<Result>(given: GivenValues, write: () => Promise<Result>): Promise<Result> {
    return write().catch(async (fault) => {
      if (!isTaken(fault)) throw fault;
      await refuseTakenValues(given);
      return writeUnlessTaken(given, write);
    });
  }

  return { refuseTakenValues, writeUnlessTaken };
}
