import { sql } from 'kysely';
import type { Statements } from '../../postgres/index.ts';
import { foldedEmail } from '../folded-email.ts';
import { type ItemValue, itemsRepeated, itemsTaken } from '../refusals.ts';
import { approximateFold } from './atomic-items.ts';
import type { Items } from './insert-items.ts';

type UniqueValues = Pick<Items, 'id' | 'email' | 'external_id'>;
type Verdict = {
  readonly is_email_repeated: boolean;
  readonly is_email_taken: boolean;
  readonly is_external_id_taken: boolean;
};

/** Why an item was not stored: the values that belonged to other users, or to earlier items, after the batch was stored. */
export type TakenResult = 'email_taken' | 'external_id_taken' | 'both_taken';

/** Finds the values of a batch that prevent items from being stored, and names all of them. */
export function findingConflicts(statements: Statements) {
  const select = statements.single<UniqueValues, Verdict>(
    'SELECT users',
    ({ id, email, external_id }) => sql`
      with item as materialized (
        select id, position, external_id, ${foldedEmail(sql.ref('email'))} as folded
        from unnest(${id}::uuid[], ${email}::text[], ${external_id}::text[])
          with ordinality as sent (id, email, external_id, position)
      )
      select row_number() over (partition by folded order by position) > 1 as is_email_repeated,
        exists (
          select from users where lower(upper(users.email)) = item.folded and ${isOfNoLaterItem}
        ) as is_email_taken,
        exists (
          select from users where users.external_id = item.external_id and ${isOfNoLaterItem}
        ) as is_external_id_taken
      from item order by position`,
  );

  const decide = ({ id, email, external_id }: UniqueValues) => select({ id, email, external_id });

  return {
    /** Refuses values that occur earlier in the batch. It asks the database only if emails may. */
    async refuseRepeated(items: UniqueValues): Promise<void> {
      const { email, external_id } = items;
      const mayRepeatEmail = new Set(email.map((one) => one && approximateFold(one))).size < email.length;
      if (!mayRepeatEmail && external_id.every((value) => value === null)) return;
      const isRepeated = (index: number) =>
        external_id[index] !== null && external_id.indexOf(external_id[index] ?? null) < index;
      const verdicts = mayRepeatEmail ? await decide(items) : [];
      const repeated = valuesWhere(email.length, ({ index, name }) =>
        name === 'email' ? verdicts[index]?.is_email_repeated === true : isRepeated(index),
      );
      if (repeated.length > 0) throw itemsRepeated(repeated);
    },
    /** Refuses repeated emails, otherwise values of existing users. Resolves if there are none, or no longer any. */
    async refuseTaken(items: UniqueValues): Promise<void> {
      const verdicts = await decide(items);
      const repeated = valuesWhere(
        verdicts.length,
        ({ index, name }) => name === 'email' && verdicts[index]?.is_email_repeated === true,
      );
      if (repeated.length > 0) throw itemsRepeated(repeated);
      const taken = valuesWhere(
        verdicts.length,
        ({ index, name }) => verdicts[index]?.[`is_${name}_taken`] === true,
      );
      if (taken.length > 0) throw itemsTaken(taken);
    },
    /** What was taken of each item, to be read after the batch was stored; undefined if nothing is taken any more. */
    async findTaken(items: UniqueValues): Promise<readonly (TakenResult | undefined)[]> {
      const verdicts = await decide(items);
      return verdicts.map(({ is_email_taken, is_external_id_taken }) => {
        if (is_external_id_taken) return is_email_taken ? 'both_taken' : 'external_id_taken';
        return is_email_taken ? 'email_taken' : undefined;
      });
    },
  };
}

/** Items are decided in their order: a value that a later item has got was not taken. */
const isOfNoLaterItem = sql`not exists (
  select from item as later where later.id = users.id and later.position > item.position
)`;

/** The values that are so, in the order of the items; the email of an item comes first. */
function valuesWhere(count: number, isSo: (value: ItemValue) => boolean): readonly ItemValue[] {
  const values = Array.from({ length: count }, (_, index): ItemValue[] => [
    { index, name: 'email' },
    { index, name: 'external_id' },
  ]);
  return values.flat().filter(isSo);
}
