// node:http and pg without a framework: token cache, named statements.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { changes, isUuid, newUser, newUsers, page } from './input.mjs';
import { nextLink } from './next-link.mjs';
import { namedQuery } from './postgres.mjs';
import { settings } from './settings.mjs';
import { refusalOf } from './tokens.mjs';
import { isConflict, usersBy } from './users.mjs';

const PATH = '/api/v1/users/';
const users = usersBy(namedQuery());

createServer((request, response) => {
  answer(request).then(
    ({ status, body, link }) => write(request, response, status, body, link),
    (error) => write(request, response, isConflict(error) ? 409 : 500, {}),
  );
}).listen(settings.port, '127.0.0.1');

async function answer(request) {
  const { method, url, headers } = request;
  if (url === '/health') return { status: 200, body: { status: 'healthy' } };
  const [path, query] = url.split('?');
  if (!path.startsWith(PATH)) return { status: 404 };
  const refusal = refusalOf(headers.authorization, method === 'GET' ? 'users.read' : 'users.write');
  if (refusal) return { status: refusal };
  const rest = path.slice(PATH.length);
  if (rest === '' && method === 'GET') return list(query);
  if (rest === '' && method === 'POST') return create(newUser(await bodyOf(request)), users.create);
  if (rest === 'batch' && method === 'POST') return create(newUsers(await bodyOf(request)), users.createAll);
  if (rest.includes('/') || rest === 'changes') return { status: 404 };
  if (!isUuid(rest)) return { status: 422 };
  if (method === 'GET') return found(await users.get(rest));
  if (method !== 'PATCH') return { status: 405 };
  const values = changes(await bodyOf(request));
  return values ? found(await users.update(rest, values)) : { status: 422 };
}

const found = (user) => (user ? { status: 200, body: user } : { status: 404 });

async function create(values, store) {
  return values ? { status: 201, body: await store(values) } : { status: 422 };
}

async function list(query) {
  const wanted = page(Object.fromEntries(new URLSearchParams(query)));
  if (!wanted) return { status: 422 };
  const body = await users.list(wanted);
  return { status: 200, body, link: nextLink(body, wanted) };
}

async function bodyOf(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  try {
    return JSON.parse(Buffer.concat(chunks).toString());
  } catch {
    return undefined;
  }
}

function write(request, response, status, body = { status }, link = undefined) {
  const text = JSON.stringify(body);
  response.writeHead(status, {
    'Content-Type': status < 400 ? 'application/json; charset=utf-8' : 'application/problem+json',
    'Content-Length': Buffer.byteLength(text),
    'X-Request-ID': request.headers['x-request-id'] ?? randomUUID(),
    ...(link && { Link: link }),
  });
  response.end(text);
}
