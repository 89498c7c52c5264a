// Fastify with all it can have: token cache, named statements pipelined on four connections, response schemas.
import { startFastify } from './fastify-app.mjs';
import { pipelinedQuery } from './postgres.mjs';
import { refusalOf } from './tokens.mjs';

const user = {
  type: 'object',
  properties: {
    id: { type: 'string' },
    email: { type: 'string' },
    full_name: { type: 'string', nullable: true },
    is_active: { type: 'boolean' },
    created_at: { type: 'string', format: 'date-time' },
    updated_at: { type: 'string', format: 'date-time' },
  },
};
const responseOf = (status, isList = false) => ({
  response: { [status]: isList ? { type: 'array', items: user } : user },
});

await startFastify({ refusalOf, query: await pipelinedQuery(), responseOf });
