// Hono on @hono/node-server: fast-jwt at every request, a pool.
import { randomUUID } from 'node:crypto';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { refusalOf } from './fast-jwt.mjs';
import { changes, isUuid, newUser, newUsers, page } from './input.mjs';
import { nextLink } from './next-link.mjs';
import { plainQuery } from './postgres.mjs';
import { settings } from './settings.mjs';
import { isConflict, usersBy } from './users.mjs';

const PATH = '/api/v1/users/';
const users = usersBy(plainQuery());
const app = new Hono();

app.use(async (context, next) => {
  context.header('X-Request-ID', context.req.header('x-request-id') ?? randomUUID());
  await next();
});
app.onError((error, context) => context.json({}, isConflict(error) ? 409 : 500));
app.get('/health', (context) => context.json({ status: 'healthy' }));
app.use(`${PATH}*`, async (context, next) => {
  const role = context.req.method === 'GET' ? 'users.read' : 'users.write';
  const refusal = refusalOf(context.req.header('authorization'), role);
  if (refusal) return context.json({ status: refusal }, refusal);
  await next();
});
app.post(PATH, async (context) => create(context, newUser(await bodyOf(context)), users.create));
app.post(`${PATH}batch`, async (context) =>
  create(context, newUsers(await bodyOf(context)), users.createAll),
);
app.get(PATH, async (context) => {
  const wanted = page(context.req.query());
  if (!wanted) return context.json({}, 422);
  const rows = await users.list(wanted);
  const link = nextLink(rows, wanted);
  if (link) context.header('Link', link);
  return context.json(rows);
});
app.get(`${PATH}:id`, async (context) => {
  const id = context.req.param('id');
  return isUuid(id) ? found(context, await users.get(id)) : context.json({}, 422);
});
app.patch(`${PATH}:id`, async (context) => {
  const id = context.req.param('id');
  const values = isUuid(id) && changes(await bodyOf(context));
  return values ? found(context, await users.update(id, values)) : context.json({}, 422);
});
serve({ fetch: app.fetch, port: settings.port, hostname: '127.0.0.1' });

const bodyOf = (context) => context.req.json().catch(() => undefined);
const found = (context, user) => (user ? context.json(user) : context.json({}, 404));

async function create(context, values, store) {
  return values ? context.json(await store(values), 201) : context.json({}, 422);
}
