// Express 5: fast-jwt at every request, a pool.
import { randomUUID } from 'node:crypto';
import express from 'express';
import { refusalOf } from './fast-jwt.mjs';
import { changes, isUuid, newUser, newUsers, page } from './input.mjs';
import { nextLink } from './next-link.mjs';
import { plainQuery } from './postgres.mjs';
import { settings } from './settings.mjs';
import { isConflict, usersBy } from './users.mjs';

const PATH = '/api/v1/users/';
const users = usersBy(plainQuery());
const app = express();
app.disable('x-powered-by');

app.use((request, response, next) => {
  response.set('X-Request-ID', request.get('x-request-id') ?? randomUUID());
  next();
});
app.get('/health', (_request, response) => response.json({ status: 'healthy' }));
app.use(PATH, (request, response, next) => {
  const role = request.method === 'GET' ? 'users.read' : 'users.write';
  const refusal = refusalOf(request.get('authorization'), role);
  return refusal ? response.status(refusal).json({ status: refusal }) : next();
});
app.use(express.json());
app.post(PATH, async ({ body }, response) => create(response, newUser(body), users.create));
app.post(`${PATH}batch`, async ({ body }, response) => create(response, newUsers(body), users.createAll));
app.get(PATH, async ({ query }, response) => {
  const wanted = page(query);
  if (!wanted) return response.status(422).json({});
  const rows = await users.list(wanted);
  const link = nextLink(rows, wanted);
  if (link) response.set('Link', link);
  return response.json(rows);
});
app.get(`${PATH}:id`, async ({ params }, response) =>
  isUuid(params.id) ? found(response, await users.get(params.id)) : response.status(422).json({}),
);
app.patch(`${PATH}:id`, async ({ params, body }, response) => {
  const values = isUuid(params.id) && changes(body);
  return values ? found(response, await users.update(params.id, values)) : response.status(422).json({});
});
app.use((error, _request, response, _next) =>
  response.status(isConflict(error) ? 409 : (error.status ?? 500)).json({}),
);
app.listen(settings.port, '127.0.0.1');

const found = (response, user) => (user ? response.json(user) : response.status(404).json({}));

async function create(response, values, store) {
  return values ? response.status(201).json(await store(values)) : response.status(422).json({});
}
