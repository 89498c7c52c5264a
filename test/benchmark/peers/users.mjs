import { v7 } from 'uuid';

const COLUMNS = 'id, email, full_name, is_active, created_at, updated_at';
const LATER = "updated_at = greatest(clock_timestamp(), updated_at + interval '1 millisecond')";

/**
 * The statements, the same for all peers: one an operation. `query(name, text, values)` gives the rows; a name is the
 * same for the same text.
 */
export function usersBy(query) {
  return {
    async get(id) {
      const [user] = await query('get', `select ${COLUMNS} from users where id = $1`, [id]);
      return user;
    },
    async create({ email, full_name }) {
      const text = `insert into users (id, email, full_name) values ($1, $2, $3) returning ${COLUMNS}`;
      const [user] = await query('create', text, [v7(), email, full_name]);
      return user;
    },
    createAll(users) {
      const text = `insert into users (id, email, full_name)
        select * from unnest($1::uuid[], $2::text[], $3::text[]) returning ${COLUMNS}`;
      const columns = [users.map(() => v7()), users.map((u) => u.email), users.map((u) => u.full_name)];
      return query('create-all', text, columns);
    },
    async update(id, changes) {
      const names = Object.keys(changes);
      const given = names.map((name, index) => `${name} = $${index + 2}, `).join('');
      const text = `update users set ${given}${LATER}, version = version + 1 where id = $1 returning ${COLUMNS}`;
      const [user] = await query(`update-${names}`, text, [id, ...Object.values(changes)]);
      return user;
    },
    list({ limit, cursor, email }) {
      if (email !== undefined) {
        const folded = 'lower($2::text collate "C")';
        const text = `select ${COLUMNS} from users where lower(email collate "C") = ${folded} limit $1`;
        return query('by-email', text, [limit, email]);
      }
      const order = 'order by created_at, id limit $1';
      if (cursor === undefined) return query('first', `select ${COLUMNS} from users ${order}`, [limit]);
      const text = `select ${COLUMNS} from users where (created_at, id) > ($2, $3) ${order}`;
      return query('after', text, [limit, ...Buffer.from(cursor, 'base64url').toString().split(' ')]);
    },
  };
}

export const isConflict = (error) => error.code === '23505';
