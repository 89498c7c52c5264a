import type { Mirror, User } from '../../infra/client/src/index.ts';

/** Users in an order that does not depend on where they are stored. */
export const byId = (users: Iterable<User>) => [...users].sort((a, b) => (a.id < b.id ? -1 : 1));

export function copyInMemory({ cursor, users = [] }: { cursor?: string; users?: readonly User[] } = {}) {
  const rows = new Map(users.map((user) => [user.id, user]));
  const copy: Mirror = {
    cursor: () => cursor,
    ids: () => rows.keys(),
    put: (user) => void rows.set(user.id, user),
    remove: (id) => void rows.delete(id),
    keep: (next) => {
      cursor = next;
    },
  };
  return { copy, rows };
}
