// Fastify as most would write it: fast-jwt at every request, a pool of ten connections. It has what the goals compare.
import { randomUUID } from 'node:crypto';
import { createVerifier } from 'fast-jwt';
import Fastify from 'fastify';
import pg from 'pg';
import { v7 } from 'uuid';

const pool = new pg.Pool({ connectionString: process.env.POSTGRES_URL, max: 10 });
const query = async (text, values) => (await pool.query(text, values)).rows;

const verify = createVerifier({
  key: process.env.PUBLIC_KEY,
  algorithms: ['RS256'],
  allowedIss: process.env.ISSUER,
  allowedAud: process.env.AUDIENCE,
  requiredClaims: ['exp', 'sub'],
});

const COLUMNS = 'id, email, full_name, is_active, created_at, updated_at';

const email = { type: 'string', maxLength: 255, pattern: '^[^@\\s]+@[^@\\s]+$' };
const full_name = { type: ['string', 'null'], maxLength: 255 };
const newUser = {
  type: 'object',
  required: ['email'],
  properties: { email, full_name: { ...full_name, default: null } },
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
app.get('/health', async () => ({ status: 'healthy' }));
app.get(`${prefix}:id`, { onRequest: reads, schema: { params: path } }, async ({ params }, reply) => {
  const [user] = await query(`select ${COLUMNS} from users where id = $1`, [params.id]);
  return user ?? reply.code(404).send({ status: 404 });
});
app.post(prefix, { onRequest: writes, schema: { body: newUser } }, async ({ body }, reply) => {
  const text = `insert into users (id, email, full_name) values ($1, $2, $3) returning ${COLUMNS}`;
  const [user] = await query(text, [v7(), body.email, body.full_name]);
  return reply.code(201).send(user);
});
await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' });

function refusalOf(authorization, role) {
  try {
    if (!authorization?.startsWith('Bearer ')) return 401;
    return verify(authorization.slice(7)).roles?.includes(role) ? undefined : 403;
  } catch {
    return 401;
  }
}
