import { sql } from 'kysely';
import type { Statements } from '../../postgres/index.ts';
import { foldedEmail } from '../folded-email.ts';
import { emailsRepeated, emailsTaken } from '../refusals.ts';
import { approximateFold } from './atomic-items.ts';

type Emails = readonly (string | null)[];
type Verdict = { readonly is_repeated: boolean; readonly is_taken: boolean };

/** Refuses an atomic batch for its emails, and names all of them. */
export function refusingBatchEmails(statements: Statements) {
  const decide = statements.single<{ emails: Emails }, Verdict>(
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
    const verdicts = await decide({ emails });
    const repeated = indexesWhere(verdicts, ({ is_repeated }) => is_repeated);
    if (repeated.length > 0) throw emailsRepeated(repeated);
    return verdicts;
  }

  return {
    /** Refuses emails that occur earlier in the batch. It asks the database only if there may be any. */
    async refuseRepeatedEmails(emails: Emails): Promise<void> {
      if (new Set(emails.map((email) => email && approximateFold(email))).size < emails.length)
        await verdictsOn(emails);
    },
    /** Refuses repeated emails, otherwise emails of existing users. Resolves if there are none, or no longer any. */
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
