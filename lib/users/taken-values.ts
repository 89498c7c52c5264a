import { sql } from 'kysely';
import { type PreparedStatement, type Statements, violatesUnique } from '../postgres/index.ts';
import { foldedEmail } from './email.ts';
import { type UniqueName, uniqueNames } from './fields.ts';
import { itemsRepeated, itemsTaken, valuesTaken } from './refusals.ts';

/** The values that a write of the user `id` sets. Null sets none. */
type UniqueValues = { readonly id: string } & Readonly<Record<UniqueName, string | null>>;

/** The values of some users, one list per member. */
type Lists<Values> = { readonly [Name in keyof Values]: readonly Values[Name][] };

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
  readonly #select: PreparedStatement<Lists<UniqueValues>, Verdict>;

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
  async refuseRepeatedItems(items: Lists<UniqueValues>): Promise<void> {
    const { email, external_id } = items;
    const mayRepeatEmail = new Set(email.map((one) => one && approximateFold(one))).size < email.length;
    if (!mayRepeatEmail && external_id.every((value) => value === null)) return;
    const verdicts = mayRepeatEmail ? await this.#decide(items) : [];
    const repeated = external_id.map((value, index) =>
      uniqueNames.filter((name) =>
        name === 'email'
          ? verdicts[index]?.is_repeated
          : value !== null && external_id.indexOf(value) < index,
      ),
    );
    refuseItems(repeated, itemsRepeated);
  }

  /** Refuses repeated emails, otherwise values of existing users. Resolves if there are none, or no longer any. */
  async refuseTakenItems(items: Lists<UniqueValues>): Promise<void> {
    const verdicts = await this.#decide(items);
    refuseItems(
      verdicts.map(({ is_repeated }) => (is_repeated ? ['email'] : [])),
      itemsRepeated,
    );
    refuseItems(verdicts.map(namesTaken), itemsTaken);
  }

  /** The names of the values of each item that belong to other users now. */
  async find(items: Lists<UniqueValues>): Promise<readonly (readonly UniqueName[])[]> {
    return (await this.#decide(items)).map(namesTaken);
  }

  #decide({ id, email, external_id }: Lists<UniqueValues>) {
    return this.#select.run({ id, email, external_id });
  }
}

/** Items are decided in their order: a value that the item itself or a later item has stored does not count as taken. */
const isOfNoLaterItem = sql`not exists (
  select from item as later where later.id = users.id and later.position >= item.position
)`;

function namesTaken(taken: Verdict): readonly UniqueName[] {
  return uniqueNames.filter((name) => taken[name]);
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
