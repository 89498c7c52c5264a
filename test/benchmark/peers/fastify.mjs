// Fastify as most would write it: fast-jwt at every request, a pool of ten connections, JSON.stringify.
import { randomUUID } from 'node:crypto';
import { createVerifier } from 'fast-jwt';
import Fastify from 'fastify';
import pg from 'pg';
import { v7 } from 'uuid';
import { nextLink } from './next-link.mjs';
import { settings } from './settings.mjs';

const pool = new pg.Pool({ connectionString: settings.postgresUrl, max: 10 });
const query = async (text, values) => (await pool.query(text, values)).rows;

const verify = createVerifier({
  key: settings.publicKey,
  algorithms: ['RS256'],
  allowedIss: settings.issuer,
  allowedAud: settings.audience,
  requiredClaims: ['exp', 'sub'],
});

const COLUMNS = 'id, email, full_name, is_active, created_at, updated_at';
const LATER = "updated_at = greatest(clock_timestamp(), updated_at + interval '1 millisecond')";

const users = {
  async get(id) {
    const [user] = await query(`select ${COLUMNS} from users where id = $1`, [id]);
    return user;
  },
  async create({ email, full_name }) {
    const text = `insert into users (id, email, full_name) values ($1, $2, $3) returning ${COLUMNS}`;
    const [user] = await query(text, [v7(), email, full_name]);
    return user;
  },
  createAll(users) {
    const text = `insert into users (id, email, full_name)
      select * from unnest($1::uuid[], $2::text[], $3::text[]) returning ${COLUMNS}`;
    const columns = [users.map(() => v7()), users.map((u) => u.email), users.map((u) => u.full_name)];
    return query(text, columns);
  },
  async update(id, changes) {
    const names = Object.keys(changes);
    const given = names.map((name, index) => `${name} = $${index + 2}, `).join('');
    const text = `update users set ${given}${LATER}, version = version + 1 where id = $1 returning ${COLUMNS}`;
    const [user] = await query(text, [id, ...Object.values(changes)]);
    return user;
  },
  list({ limit, cursor, email }) {
    if (email !== undefined) {
      const folded = 'lower($2::text collate "C")';
      const text = `select ${COLUMNS} from users where lower(email collate "C") = ${folded} limit $1`;
      return query(text, [limit, email]);
    }
    const order = 'order by created_at, id limit $1';
    if (cursor === undefined) return query(`select ${COLUMNS} from users ${order}`, [limit]);
    const text = `select ${COLUMNS} from users where (created_at, id) > ($2, $3) ${order}`;
    return query(text, [limit, ...Buffer.from(cursor, 'base64url').toString().split(' ')]);
  },
};

const email = { type: 'string', maxLength: 255, pattern: '^[^@\\s]+@[^@\\s]+$' };
const full_name = { type: ['string', 'null'], maxLength: 255 };
const newUser = {
  type: 'object',
  required: ['email'],
  properties: { email, full_name: { ...full_name, default: null } },
};
const batch = {
  type: 'object',
  required: ['items'],
  properties: { items: { type: 'array', minItems: 1, maxItems: 100, items: newUser } },
};
const changes = { type: 'object', properties: { email, full_name, is_active: { type: 'boolean' } } };
const page = {
  type: 'object',
  properties: {
    limit: { type: 'integer', minimum: 1, maximum: 1000, default: 100 },
    cursor: { type: 'string' },
    email,
  },
};
const path = {
  type: 'object',
  properties: { id: { type: 'string', pattern: '^[\\da-fA-F]{8}(-[\\da-fA-F]{4}){3}-[\\da-fA-F]{12}$' } },
};

const app = Fastify({ requestIdHeader: 'x-request-id', genReqId: () => randomUUID() });
const prefix = '/api/v1/users/';

const demand = (role) => async (request, reply) => {
  const refusal = refusalOf(request.headers.authorization, role);
  if (refusal) return reply.code(refusal).send({ status: refusal });
};
const [reads, writes] = [demand('users.read'), demand('users.write')];

app.addHook('onRequest', async (request, reply) => void reply.header('X-Request-ID', request.id));
app.setErrorHandler((error, _request, reply) => {
  const status = error.validation ? 422 : error.code === '23505' ? 409 : (error.statusCode ?? 500);
  return reply.code(status).send({ status });
});
const found = (user, reply) => user ?? reply.code(404).send({ status: 404 });

app.get('/health', async () => ({ status: 'healthy' }));
app.get(`${prefix}:id`, { onRequest: reads, schema: { params: path } }, async ({ params }, reply) =>
  found(await users.get(params.id), reply),
);
app.patch(
  `${prefix}:id`,
  { onRequest: writes, schema: { params: path, body: changes } },
  async ({ params, body }, reply) => found(await users.update(params.id, body), reply),
);
app.post(prefix, { onRequest: writes, schema: { body: newUser } }, async ({ body }, reply) => {
  reply.code(201);
  return users.create(body);
});
app.post(`${prefix}batch`, { onRequest: writes, schema: { body: batch } }, async ({ body }, reply) => {
  reply.code(201);
  return users.createAll(body.items);
});
app.get(prefix, { onRequest: reads, schema: { querystring: page } }, async ({ query: wanted }, reply) => {
  const rows = await users.list(wanted);
  const link = nextLink(rows, wanted);
  if (link) reply.header('Link', link);
  return rows;
});
await app.listen({ port: settings.port, host: '127.0.0.1' });

function refusalOf(authorization, role) {
  try {
    if (!authorization?.startsWith('Bearer ')) return 401;
    return verify(authorization.slice(7)).roles?.includes(role) ? undefined : 403;
  } catch {
    return 401;
  }
}
