import { sql } from 'kysely';

/** A change as PostgreSQL returns it: numbers of type bigint arrive as texts. */
export type ChangeRow = {
  readonly position: string;
  readonly user_id: string;
  readonly version: string;
  readonly type: number;
  readonly changed: number;
  readonly actor: string;
  readonly request_id: string;
  /** Random, with 32 bits; 0 for changes of earlier versions. */
  readonly identity: number;
  /** Milliseconds since 1970. */
  readonly time: string;
};

/** The columns of a change. Its time is a number, as in `user-statements.ts`. */
export const changeColumns = sql.raw(`position, user_id, version, type, changed, actor, request_id,
    coalesce(identity, 0) as identity, (date_part('epoch', time) * 1000)::bigint as time`);

/** The identity of a change in eight hexadecimal digits. Two changes that get the same position have different ones. */
export function identityOf({ identity }: ChangeRow): string {
  return (identity >>> 0).toString(16).padStart(8, '0');
}

export function idOf(change: ChangeRow): string {
  return `${change.position}-${identityOf(change)}`;
}
