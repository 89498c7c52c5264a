import { endpoint } from '../../lib/endpoint/endpoint.ts';
import { createProbeReply } from '../../lib/http/reply.ts';
import { lambda } from '../../lib/lambda.ts';
import { composeBase } from '../../lib/service.ts';

export const health = endpoint(
  {
    operationId: 'health',
    summary: 'Whether the process runs',
    isProbe: true,
    needs: 'nothing',
    method: 'GET',
    path: '/health',
    role: 'public',
    reply: createProbeReply('healthy'),
  },
  () => {},
);

export const handler = /* @__PURE__ */ lambda(health, composeBase);
