import { sql } from 'kysely';
import { keptSince } from '../idempotency/key-table.ts';
import { KeyedRequests } from '../idempotency/replay.ts';
import type { PreparedStatement, Statements } from '../postgres/index.ts';
import { createdFields, type UniqueName } from './fields.ts';
import type { User } from './user.ts';
import { userColumns } from './user-statements.ts';

/**
 * What became of an item of a create: its user; in a replay `gone` if it has since been deleted; `refused` or, if that
 * is known, the names of its `taken` values if it was never stored. Only the first response knows what was taken.
 */
export type CreatedItem = User | 'gone' | 'refused' | { readonly taken: readonly UniqueName[] };

type KeyRow = (User | { readonly id: null }) & {
  readonly request: Buffer;
  readonly created: string | null;
};

/** Whether the item is stored. */
export function isUser(item: CreatedItem | undefined): item is User {
  return typeof item === 'object' && 'id' in item;
}

/**
 * The values of a user to create that identify it under an idempotency key. A field that a later version added is among
 * them only if it is set, so that the digests of requests without it stay the same. Null means not set. A value that is
 * not an object is itself what identifies it.
 */
export function keyedValues(user: unknown): unknown {
  if (typeof user !== 'object' || user === null) return user;
  const values: Readonly<Record<string, unknown>> = { ...user };
  return createdFields.flatMap(({ name, inKey }) => {
    const value = values[name];
    if (inKey === 'always') return [value];
    return value === undefined || value === null ? [] : [[name, value]];
  });
}

/** The creates with a key of one instance. The record of a key has one entry per item of its request, in their order. */
export class KeyedCreates extends KeyedRequests<readonly CreatedItem[]> {
  readonly #select: PreparedStatement<{ key: Buffer }, KeyRow>;

  constructor(statements: Statements) {
    super(statements);
    this.#select = statements.single(
      'SELECT idempotency_keys',
      ({ key }) => sql`
        select held.request, item.created, ${userColumns}
        from idempotency_keys as held
        cross join lateral unnest(held.user_ids) with ordinality as item (created, position)
        left join users on users.id = item.created
        where held.key = ${key} and held.created_at > ${keptSince}
        order by item.position`,
    );
  }

  protected override async readRecord(key: Buffer) {
    const rows = await this.#select.run({ key });
    return rows[0] && { request: rows[0].request, created: rows.map(readItem) };
  }
}

function readItem({ request: _, created, ...row }: KeyRow): CreatedItem {
  if (created === null) return 'refused';
  return row.id === null ? 'gone' : row;
}
