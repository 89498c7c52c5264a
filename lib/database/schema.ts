import type { ColumnType, Generated } from 'kysely';

/** The tables, as the queries see them. */
export type Tables = { users: UsersTable };

type UsersTable = {
  /** UUID version 7, made by the service. */
  id: string;
  email: string;
  full_name: string | null;
  is_active: Generated<boolean>;
  created_at: ColumnType<never, never, never>;
  updated_at: ColumnType<never, never, unknown>;
  /** bigint, which pg reads as text; every write increments it. */
  version: ColumnType<string, never, unknown>;
};
