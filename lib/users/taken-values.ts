import { sql } from 'kysely';
import { type PreparedStatement, type Statements, violatesUnique } from '../postgres/index.ts';
import { foldedEmail } from './email.ts';
import { type UniqueName, uniqueNames } from './fields.ts';
import { itemsRepeated, itemsTaken, valuesTaken } from './refusals.ts';

/** The values that a write of the user `id` sets. Null sets none. */
type UniqueValues = { readonly id: string } & Readonly<Record<UniqueName, string | null>>;

/** The values of some users, one list per member. A list without a value may be null. */
type UniqueLists = { readonly id: readonly string[] } & {
  readonly [Name in UniqueName]: readonly (string | null)[] | null;
};

/** Which of the values of an item are taken, and whether an earlier item has its email. */
type Verdict = Readonly<Record<UniqueName | 'is_repeated', boolean>>;

/** Whether a unique index refused a write for a value of a user, so that two racing writers cannot both win. */
export function isTaken(fault: unknown): boolean {
  return violatesUnique(fault, 'users_email_key') || violatesUnique(fault, 'users_external_id_key');
}

/**
 * Finds the values for which users cannot be written, and refuses their writes. One statement serves a single user and a
 * batch. A statement for one user alone was five times as fast in PostgreSQL, but only a refused write sends it.
 */
export class TakenValues {
  readonly #select: PreparedStatement<UniqueLists, Verdict>;

  constructor(statements: Statements) {
    this.#select = statements.single(
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
  }

  /** Sends a write until it is stored or refused. The time limit of the request's statements ends the loop. */
  async writeUnlessTaken<Result>(given: UniqueValues, write: () => Promise<Result>): Promise<Result> {
    for (;;) {
      try {
        return await write();
      } catch (fault) {
        if (!isTaken(fault)) throw fault;
        await this.refuse(given);
      }
    }
  }

  /** Refuses the values that belong to other users now. Resolves if there are none any more: the write is then sent again. */
  async refuse({ id, email, external_id }: UniqueValues): Promise<void> {
    const [names = []] = await this.find({ id: [id], email: [email], external_id: [external_id] });
    if (names.length > 0) throw valuesTaken(names);
  }

  /** Refuses values that occur earlier in a batch. It asks the database only if emails may. */
  async refuseRepeatedItems(items: UniqueLists): Promise<void> {
    const { id, email, external_id } = items;
    // Nearly all emails that PostgreSQL takes for one are equal in this form. Only the collation of the column knows all of
    // them, so PostgreSQL decides what is stored.
    const emails = email?.map((one) => one?.toUpperCase().toLowerCase()) ?? [];
    const verdicts = new Set(emails).size < emails.length ? await this.#select.run(items) : [];
    if (verdicts.length === 0 && !external_id) return;
    const repeated = id.map((_, index) => {
      const externalId = external_id?.[index] ?? null;
      return {
        email: verdicts[index]?.is_repeated === true,
        external_id: externalId !== null && external_id?.indexOf(externalId) !== index,
      };
    });
    refuseItems(repeated, itemsRepeated);
  }

  /** Refuses repeated emails, otherwise values of existing users. Resolves if there are none, or no longer any. */
  async refuseTakenItems(items: UniqueLists): Promise<void> {
    const verdicts = await this.#select.run(items);
    refuseItems(
      verdicts.map(({ is_repeated }) => ({ email: is_repeated })),
      itemsRepeated,
    );
    refuseItems(verdicts, itemsTaken);
  }

  /** The names of the values of each item that belong to other users now. */
  async find(items: UniqueLists): Promise<readonly (readonly UniqueName[])[]> {
    return (await this.#select.run(items)).map(listTaken);
  }
}

/** Items are decided in their order: a value that the item itself or a later item has stored does not count as taken. */
const isOfNoLaterItem = sql`not exists (
  select from item as later where later.id = users.id and later.position >= item.position
)`;

function listTaken(verdict: Partial<Verdict>): readonly UniqueName[] {
  return uniqueNames.filter((name) => verdict[name]);
}

/** Refuses the named values of items, if there are any, in the order of the items. */
function refuseItems(verdicts: readonly Partial<Verdict>[], refusal: typeof itemsTaken): void {
  const values = verdicts.flatMap((verdict, index) => listTaken(verdict).map((name) => ({ index, name })));
  if (values.length > 0) throw refusal(values);
}
