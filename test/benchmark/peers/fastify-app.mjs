// The routes of both Fastify peers; they differ in what they are given.
import { randomUUID } from 'node:crypto';
import Fastify from 'fastify';
import { nextLink } from './next-link.mjs';
import { settings } from './settings.mjs';
import { isConflict, usersBy } from './users.mjs';

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

/** `responseOf(status, isList)` is the schema that an answer is written by, or undefined for JSON.stringify. */
export async function startFastify({ refusalOf, query, responseOf }) {
  const users = usersBy(query);
  const app = Fastify({ requestIdHeader: 'x-request-id', genReqId: () => randomUUID() });
  const prefix = '/api/v1/users/';

  const demand = (role) => async (request, reply) => {
    const refusal = refusalOf(request.headers.authorization, role);
    if (refusal) return reply.code(refusal).send({ status: refusal });
  };
  const [reads, writes] = [demand('users.read'), demand('users.write')];

  app.addHook('onRequest', async (request, reply) => void reply.header('X-Request-ID', request.id));
  app.setErrorHandler((error, _request, reply) => {
    const status = error.validation ? 422 : isConflict(error) ? 409 : (error.statusCode ?? 500);
    return reply.code(status).send({ status });
  });
  const found = (user, reply) => user ?? reply.code(404).send({ status: 404 });

  app.get('/health', async () => ({ status: 'healthy' }));
  app.get(
    `${prefix}:id`,
    { onRequest: reads, schema: { params: path, ...responseOf(200) } },
    async ({ params }, reply) => found(await users.get(params.id), reply),
  );
  app.patch(
    `${prefix}:id`,
    { onRequest: writes, schema: { params: path, body: changes, ...responseOf(200) } },
    async ({ params, body }, reply) => found(await users.update(params.id, body), reply),
  );
  app.post(
    prefix,
    { onRequest: writes, schema: { body: newUser, ...responseOf(201) } },
    async ({ body }, reply) => {
      reply.code(201);
      return users.create(body);
    },
  );
  app.post(
    `${prefix}batch`,
    { onRequest: writes, schema: { body: batch, ...responseOf(201, true) } },
    async ({ body }, reply) => {
      reply.code(201);
      return users.createAll(body.items);
    },
  );
  app.get(
    prefix,
    { onRequest: reads, schema: { querystring: page, ...responseOf(200, true) } },
    async ({ query: wanted }, reply) => {
      const rows = await users.list(wanted);
      const link = nextLink(rows, wanted);
      if (link) reply.header('Link', link);
      return rows;
    },
  );
  await app.listen({ port: settings.port, host: '127.0.0.1' });
}
