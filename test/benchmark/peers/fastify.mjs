// Fastify as most would write it: fast-jwt at every request, a pool, JSON.stringify.
import { refusalOf } from './fast-jwt.mjs';
import { startFastify } from './fastify-app.mjs';
import { plainQuery } from './postgres.mjs';

await startFastify({ refusalOf, query: plainQuery(), responseOf: () => ({}) });
