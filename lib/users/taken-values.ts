import { type RawBuilder, sql } from 'kysely';
import {
  type PreparedStatement,
  repeatUntilDone,
  type Statements,
  violatesUnique,
} from '../postgres/index.ts';
import { foldedEmail } from './email.ts';
import { type UniqueName, uniqueNames } from './fields.ts';
import { emailTaken, itemsTaken, valuesTaken } from './refusals.ts';

/** The values that a write of the user `id` sets. Null sets none. */
type UniqueValues = { readonly id: string } & Readonly<Record<UniqueName, string | null>>;

/** The values of some users, one list per member. A list without a value may be null. */
type UniqueLists = { readonly id: readonly string[] } & {
  readonly [Name in UniqueName]: readonly (string | null)[] | null;
};

type Verdict = Readonly<Record<UniqueName, boolean>>;

/** Conditions for a row of `users` to have a value, by the unique indexes. */
export const hasValue = {
  email: (value) => sql`${foldedEmail(sql.ref('users.email'))} = ${foldedEmail(value)}`,
  external_id: (value) => sql`users.external_id collate "C" = ${value}`,
} as const satisfies Record<UniqueName, (value: RawBuilder<unknown>) => RawBuilder<unknown>>;

/**
 * Undefined if a unique index refused a write for a value of a user, so that two racing writers cannot both win.
 *
 * @throws any other fault
 */
export function ignoreTaken(fault: unknown): undefined {
  if (!violatesUnique(fault, 'users_email_key') && !violatesUnique(fault, 'users_external_id_key'))
    throw fault;
}

/** Finds the values for which users cannot be written, and refuses their writes. One statement serves a user and a batch. */
export class TakenValues {
  readonly #select: PreparedStatement<UniqueLists, Verdict>;

  constructor(statements: Statements) {
    this.#select = statements.ownSessionRead(
      'SELECT users',
      ({ id, email, external_id }) => sql`
        with item as materialized (
          select * from unnest(${id}::uuid[], ${email}::text[], ${external_id}::text[])
            with ordinality as sent (id, email, external_id, position)
        )
        select exists (select from users where ${hasValue.email(sql.ref('item.email'))} and ${isOfNoLaterItem}) as email,
          exists (select from users where ${hasValue.external_id(sql.ref('item.external_id'))} and ${isOfNoLaterItem}) as external_id
        from item order by position`,
    );
  }

  /** Sends a write until it is stored or refused. A write that a unique index refuses fails, or resolves with undefined. */
  writeUnlessTaken<Result>(given: UniqueValues, write: () => Promise<Result | undefined>): Promise<Result> {
    return repeatUntilDone(() =>
      write().then(
        (result) => result ?? this.#refuse(given),
        (fault) => {
          ignoreTaken(fault);
          return this.#refuse(given);
        },
      ),
    );
  }

  /** Refuses the values that belong to other users now. Resolves if there are none any more: the write is then sent again. */
  async #refuse({ id, email, external_id }: UniqueValues): Promise<undefined> {
    if (external_id === null) throw emailTaken();
    const [names = []] = await this.find({ id: [id], email: [email], external_id: [external_id] });
    if (names.length > 0) throw valuesTaken(names);
    return undefined;
  }

  /** Refuses values of existing users. Resolves if there are none any more. */
  async refuseTakenItems(items: UniqueLists): Promise<void> {
    const values = (await this.find(items)).flatMap((names, index) => names.map((name) => ({ index, name })));
    if (values.length > 0) throw itemsTaken(values);
  }

  async find(items: UniqueLists): Promise<readonly (readonly UniqueName[])[]> {
    const verdicts = await this.#select.run(items);
    return verdicts.map((verdict) => uniqueNames.filter((name) => verdict[name]));
  }
}

/** Items are decided in their order: a value that the item itself or a later item has stored does not count as taken. */
const isOfNoLaterItem = sql`not exists (
  select from item as later where later.id = users.id and later.position >= item.position
)`;
