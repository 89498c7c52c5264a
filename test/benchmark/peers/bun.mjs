// Bun.serve and Bun.sql, which prepares its statements by itself: token cache.
import { changes, isUuid, newUser, newUsers, page } from './input.mjs';
import { refusalOf } from './tokens.mjs';

const sql = new Bun.SQL({ url: process.env.POSTGRES_URL, max: 10 });
const COLUMNS = 'id, email, full_name, is_active, created_at, updated_at';
const columns = sql.unsafe(COLUMNS);
const PATH = '/api/v1/users/';

Bun.serve({
  port: Number(process.env.PORT),
  hostname: '127.0.0.1',
  routes: {
    '/health': (request) => json(request, { status: 'healthy' }),
    [PATH]: { GET: guarded('users.read', list), POST: guarded('users.write', create) },
    [`${PATH}batch`]: { POST: guarded('users.write', createAll) },
    [`${PATH}:id`]: { GET: guarded('users.read', get), PATCH: guarded('users.write', update) },
  },
  fetch: (request) => json(request, {}, 404),
  error: (error) => Response.json({}, { status: error.errno === '23505' ? 409 : 500 }),
});

function guarded(role, respond) {
  return (request) => {
    const refusal = refusalOf(request.headers.get('authorization'), role);
    return refusal ? json(request, {}, refusal) : respond(request);
  };
}

async function get(request) {
  const { id } = request.params;
  if (!isUuid(id)) return json(request, {}, 422);
  const [user] = await sql`select ${columns} from users where id = ${id}`;
  return user ? json(request, user) : json(request, {}, 404);
}

async function create(request) {
  const user = newUser(await bodyOf(request));
  if (!user) return json(request, {}, 422);
  const [stored] = await sql`insert into users (id, email, full_name)
    values (${Bun.randomUUIDv7()}, ${user.email}, ${user.full_name}) returning ${columns}`;
  return json(request, stored, 201);
}

async function createAll(request) {
  const users = newUsers(await bodyOf(request));
  if (!users) return json(request, {}, 422);
  const rows = users.map((user) => ({ id: Bun.randomUUIDv7(), ...user }));
  return json(request, await sql`insert into users ${sql(rows)} returning ${columns}`, 201);
}

async function update(request) {
  const { id } = request.params;
  const values = isUuid(id) && changes(await bodyOf(request));
  if (!values) return json(request, {}, 422);
  const names = Object.keys(values);
  const given = names.map((name, index) => `${name} = $${index + 2}, `).join('');
  const text = `update users set ${given}updated_at = greatest(clock_timestamp(), updated_at + interval '1 millisecond'),
    version = version + 1 where id = $1 returning ${COLUMNS}`;
  const [user] = await sql.unsafe(text, [id, ...Object.values(values)]);
  return user ? json(request, user) : json(request, {}, 404);
}

async function list(request) {
  const wanted = page(Object.fromEntries(new URL(request.url).searchParams));
  if (!wanted) return json(request, {}, 422);
  const rows = await rowsOf(wanted);
  const link = nextLink(rows, wanted);
  return json(request, rows, 200, link && { Link: link });
}

function rowsOf({ limit, cursor, email }) {
  if (email !== undefined) {
    return sql`select ${columns} from users
      where lower(email collate "C") = lower(${email}::text collate "C") limit ${limit}`;
  }
  if (cursor === undefined) return sql`select ${columns} from users order by created_at, id limit ${limit}`;
  const [created_at, id] = Buffer.from(cursor, 'base64url').toString().split(' ');
  return sql`select ${columns} from users where (created_at, id) > (${created_at}, ${id})
    order by created_at, id limit ${limit}`;
}

const bodyOf = (request) => request.json().catch(() => undefined);

function json(request, body, status = 200, headers = {}) {
  const requestId = request.headers.get('x-request-id') ?? crypto.randomUUID();
  return Response.json(body, { status, headers: { 'X-Request-ID': requestId, ...headers } });
}

function nextLink(users, { limit, email }) {
  if (users.length < limit || email !== undefined) return undefined;
  const { created_at, id } = users.at(-1);
  const cursor = Buffer.from(`${created_at.toISOString()} ${id}`).toString('base64url');
  return `</api/v1/users/?limit=${limit}&cursor=${cursor}>; rel="next"`;
}
