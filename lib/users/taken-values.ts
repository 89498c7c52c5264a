import { sql } from 'kysely';
import { type Statements, violatesUnique } from '../postgres/index.ts';
import { foldedEmail } from './email.ts';
import { itemsRepeated, itemsTaken, UNIQUE_NAMES, type UniqueName, valuesTaken } from './refusals.ts';

/** The values that a write of the user `id` sets. Null sets none. */
type UniqueValues = { readonly id: string } & Readonly<Record<UniqueName, string | null>>;

/** The values of some users, one list per member. */
type Lists<Values> = { readonly [Name in keyof Values]: readonly Values[Name][] };

/** Which of the values are taken. */
type Taken = Readonly<Record<UniqueName, boolean>>;

/** Whether a unique index refused a write for a value of a user, so that two racing writers cannot both win. */
export function isTaken(fault: unknown): boolean {
  return violatesUnique(fault, 'users_email_key') || violatesUnique(fault, 'users_external_id_key');
}

/** Finds the values for which users cannot be written, and refuses their writes. */
export function refusingTakenValues(statements: Statements) {
  // With the statement of a batch, the look for one user took five times as long.
  const look = statements.single<UniqueValues, Taken>(
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
  const select = statements.single<Lists<UniqueValues>, Taken & { readonly is_repeated: boolean }>(
    'SELECT users',
    ({ id, email, external_id }) => sql`
      with item as materialized (
        select id, position, external_id, ${foldedEmail(sql.ref('email'))} as folded
        from unnest(${id}::uuid[], ${email}::text[], ${external_id}::text[])
          with ordinality as sent (id, email, external_id, position)
      )
      select row_number() over (partition by folded order by position) > 1 as is_repeated,
        exists (
          select from users where lower(upper(users.email)) = item.folded and ${isOfNoLaterItem}
        ) as email,
        exists (
          select from users where users.external_id = item.external_id and ${isOfNoLaterItem}
        ) as external_id
      from item order by position`,
  );

  const decide = ({ id, email, external_id }: Lists<UniqueValues>) => select({ id, email, external_id });

  /** Refuses the values that belong to other users now. Resolves if there are none any more: the write is then sent again. */
  async function refuseTakenValues({ id, email, external_id }: UniqueValues): Promise<void> {
    const names = (await look({ id, email, external_id })).flatMap(namesTaken);
    if (names.length > 0) throw valuesTaken(names);
  }

  /** Sends a write until it is stored or refused. The time limit of the request's statements ends the loop. */
  function writeUnlessTaken<Result>(given: UniqueValues, write: () => Promise<Result>): Promise<Result> {
    return write().catch(async (fault) => {
      if (!isTaken(fault)) throw fault;
      await refuseTakenValues(given);
      return writeUnlessTaken(given, write);
    });
  }

  return {
    refuseTakenValues,
    writeUnlessTaken,
    /** Refuses values that occur earlier in a batch. It asks the database only if emails may. */
    async refuseRepeatedItems(items: Lists<UniqueValues>): Promise<void> {
      const { email, external_id } = items;
      const mayRepeatEmail = new Set(email.map((one) => one && approximateFold(one))).size < email.length;
      if (!mayRepeatEmail && external_id.every((value) => value === null)) return;
      const verdicts = mayRepeatEmail ? await decide(items) : [];
      const repeated = external_id.map((value, index) =>
        UNIQUE_NAMES.filter((name) =>
          name === 'email'
            ? verdicts[index]?.is_repeated
            : value !== null && external_id.indexOf(value) < index,
        ),
      );
      refuseItems(repeated, itemsRepeated);
    },
    /** Refuses repeated emails, otherwise values of existing users. Resolves if there are none, or no longer any. */
    async refuseTakenItems(items: Lists<UniqueValues>): Promise<void> {
      const verdicts = await decide(items);
      refuseItems(
        verdicts.map(({ is_repeated }) => (is_repeated ? ['email'] : [])),
        itemsRepeated,
      );
      refuseItems(verdicts.map(namesTaken), itemsTaken);
    },
    /** The names of what was taken of each item, to be read after the batch was stored; empty if nothing is any more. */
    async findTaken(items: Lists<UniqueValues>): Promise<readonly (readonly UniqueName[])[]> {
      return (await decide(items)).map(namesTaken);
    },
  };
}

/** Items are decided in their order: a value that a later item has got was not taken. */
const isOfNoLaterItem = sql`not exists (
  select from item as later where later.id = users.id and later.position > item.position
)`;

function namesTaken(taken: Taken): readonly UniqueName[] {
  return UNIQUE_NAMES.filter((name) => taken[name]);
}

/** Refuses the named values of items, if there are any, in the order of the items. */
function refuseItems(named: readonly (readonly UniqueName[])[], refusal: typeof itemsTaken): void {
  const values = named.flatMap((names, index) => names.map((name) => ({ index, name })));
  if (values.length > 0) throw refusal(values);
}

/**
 * An address in a form that is equal for nearly all addresses that PostgreSQL takes for one. Only the collation of the
 * column knows which these are, so what is stored is decided there.
 */
function approximateFold(email: string): string {
  return email.toUpperCase().toLowerCase();
}
