import { sql } from 'kysely';
import { prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';
import { foldedEmail } from './folded-email.ts';
import { emailsRepeated, emailsTaken } from './refusals.ts';

type Emails = readonly (string | null)[];
type Verdict = { readonly is_repeated: boolean; readonly is_taken: boolean };

/**
 * Refuses a batch for the emails in it, all that are in the way at once: those that stand earlier in it, else those that
 * users have. Resolves where there are none, or none any more.
 */
export function refusingTakenEmails(statements: Statements) {
  const judge = prepare<{ emails: Emails }, Verdict>(
    statements,
    'SELECT users',
    ({ emails }) => sql`
      select row_number() over (partition by folded order by position) > 1 as is_repeated,
        exists (select from users where lower(upper(users.email)) = item.folded) as is_taken
      from (
        select position, ${foldedEmail(sql.ref('email'))} as folded
        from unnest(${emails}::text[]) with ordinality as sent (email, position)
      ) as item
      order by position`,
  );

  return async (emails: Emails): Promise<void> => {
    const verdicts = await judge({ emails });
    const indexesWhere = (isSo: (verdict: Verdict) => boolean) =>
      verdicts.flatMap((verdict, index) => (isSo(verdict) ? [index] : []));
    const repeated = indexesWhere(({ is_repeated }) => is_repeated);
    if (repeated.length > 0) throw emailsRepeated(repeated);
    const taken = indexesWhere(({ is_taken }) => is_taken);
    if (taken.length > 0) throw emailsTaken(taken);
  };
}
