import { describe, expect, test } from 'vitest';
import type { RawRequest } from '../../stage/raw-request.ts';
import { serviceUnderTest } from '../../stage/service-under-test.ts';
import { asPlainGet, type HttpExchange, sendOnSocket } from './exchange.ts';
import { lint } from './rules.ts';

const service = serviceUnderTest(() => ({ SVC_ENV: 'development', SVC_REQUIRE_IF_MATCH: 'true' }));

type Fields = RawRequest['fields'];

/** What the parity table cannot have, because only the host serves it, or because a setting decides it. */
const REQUESTS: readonly (readonly [status: number, line: string, fields?: Fields, body?: string])[] = [
  [200, 'GET http://service.test/health'],
  [200, 'GET /health', [['Connection', 'close']]],
  [200, 'HEAD /health', [['Connection', 'close']]],
  [200, 'GET /health', [['Range', 'bytes=0-1']]],
  [200, 'GET /health', [['Expect', '100-continue']]],
  [200, 'GET /health', [['Expect', '200-maybe']]],
  [200, 'GET /docs'],
  [200, 'HEAD /docs'],
  [200, 'GET /openapi.json'],
  [400, 'GET /health', [['Host', 'other.test']]],
  [400, 'CONNECT service.test:443'],
  [401, 'POST /api/v1/users/', [['Expect', '100-continue']], '{}'],
  [404, 'OPTIONS *'],
  [400, 'BREW /health'],
  [405, 'POST /docs'],
  [428, 'PATCH /api/v1/users/42', [['Authorization', 'Bearer {token}']], '{}'],
  [431, 'HEAD /health', [['X-Long', 'x'.repeat(20_000)]]],
];

describe('the response of the host keeps the rules of HTTP:', () => {
  test.for(REQUESTS)('%i to %s %j', async ([status, line, fields = [], body = '']) => {
    const [method = '', target = ''] = line.split(' ');
    const token = await service.issuer.sign();
    const request: RawRequest = {
      method,
      target,
      fields: fields.map(([name, value]) => [name, value.replace('{token}', token)]),
      body: Buffer.from(body),
    };
    const exchange: HttpExchange = { request, response: await sendOnSocket(service.url, request) };
    const plain = method === 'HEAD' && { plain: await sendOnSocket(service.url, asPlainGet(request)) };

    expect(exchange.response.status).toBe(status);
    expect(lint({ ...exchange, ...plain })).toEqual([]);
  });
});
