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
    reply: createProbeReply('ready'),
  },
  (_, { readiness }) => readiness.check(),
);

export const handler = /* @__PURE__ */ lambda(ready, composeProbes);
