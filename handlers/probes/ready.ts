import * as z from 'zod';
import { endpoint } from '../../lib/endpoint/endpoint.ts';
import { createProbeReply } from '../../lib/http/reply.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeProbes } from '../../lib/service.ts';

/** Reports whether the instance accepts requests: the database is connected, and no shutdown has begun. */
export const ready = endpoint(
  {
    operationId: 'ready',
    summary: 'Whether the service can answer requests',
    isProbe: true,
    needs: 'readiness',
    method: 'GET',
    path: '/ready',
    role: 'public',
    reply: createProbeReply(z.literal('ready')),
  },
  async (_, { readiness }) => {
    await readiness.check();
    return { status: 'ready' as const };
  },
);

export const handler = /* @__PURE__ */ lambda(ready, composeProbes);
