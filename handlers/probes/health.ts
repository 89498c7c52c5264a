import * as z from 'zod';
import { endpoint } from '../../lib/endpoint/endpoint.ts';
import { createProbeReply } from '../../lib/http/reply.ts';

export const health = endpoint(
  {
    operationId: 'health',
    summary: 'Whether the process runs',
    isProbe: true,
    needs: 'nothing',
    method: 'GET',
    path: '/health',
    role: 'public',
    reply: createProbeReply(z.literal('healthy')),
  },
  () => ({ status: 'healthy' as const }),
);
