import { sql } from 'kysely';
import { prepare } from '../database/prepared.ts';
import type { Statements } from '../database/statements.ts';
import { nearlyFolded } from './atomic-items.ts';
import { foldedEmail } from './folded-email.ts';
import { emailsRepeated, emailsTaken } from './refusals.ts';

type Emails = readonly (string | null)[];
type Verdict = { readonly is_repeated: boolean; readonly is_taken: boolean };

/** Refuses a batch that is stored as a whole for the emails in it, all that are in the way at once. */
export function refusingBatchEmails(statements: Pick<Statements, 'run'>) {
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

  async function verdictsOn(emails: Emails): Promise<readonly Verdict[]> {
    const verdicts = await judge({ emails });
    const repeated = indexesWhere(verdicts, ({ is_repeated }) => is_repeated);
    if (repeated.length > 0) throw emailsRepeated(repeated);
    return verdicts;
  }

  return {
    /** For those that stand earlier in the batch; asks the database only where there may be any. */
    async refuseRepeatedEmails(emails: Emails): Promise<void> {
      if (new Set(emails.map((email) => email && nearlyFolded(email))).size < emails.length)
        await verdictsOn(emails);
    },
    /** For those, else for those that users have; resolves where there are none, or none any more. */
    async refuseEmails(emails: Emails): Promise<void> {
      const verdicts = await verdictsOn(emails);
      const taken = indexesWhere(verdicts, ({ is_taken }) => is_taken);
      if (taken.length > 0) throw emailsTaken(taken);
    },
  };
}

function indexesWhere(verdicts: readonly Verdict[], isSo: (verdict: Verdict) => boolean): readonly number[] {
  return verdicts.flatMap((verdict, index) => (isSo(verdict) ? [index] : []));
}
