import fc from 'fast-check';
import { expect, test } from 'vitest';
import { exchange, type HttpResponse, type RawRequest } from '../stage/raw-request.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { operationOf } from './document.ts';
import { Properties } from './properties.ts';
import { sequences } from './sequences.ts';

const service = serviceUnderTest(() => ({ SVC_LOG_LEVEL: 'error' }));

type Send = (request: RawRequest) => Promise<HttpResponse>;
type Fault = (request: RawRequest, send: Send) => Promise<HttpResponse>;
type Json = Readonly<Record<string, unknown>>;

/** Another method, as if the service took the request for it. */
const withMethod =
  (method: string, other: string): Fault =>
  (request, sent) =>
    sent(request.method === method ? { ...request, method: other } : request);

const withResponse =
  (change: (response: HttpResponse, request: RawRequest) => HttpResponse): Fault =>
  async (request, sent) =>
    change(await sent(request), request);

const withField = (name: string, value?: string): Fault =>
  withResponse((response) => ({
    ...response,
    fields: [
      ...response.fields.filter(([one]) => one.toLowerCase() !== name.toLowerCase()),
      ...(value === undefined ? [] : [[name, value] as const]),
    ],
  }));

/** Other JSON in the responses with this status to this method. */
const withJson = (method: string, status: number, change: (value: Json) => unknown): Fault =>
  withResponse((response, request) => {
    if (request.method !== method || response.status !== status) return response;
    const content = Buffer.from(JSON.stringify(change(JSON.parse(response.content.toString()))));
    const fields = response.fields.filter(([name]) => name.toLowerCase() !== 'content-length');
    return { ...response, content, fields: [...fields, ['Content-Length', String(content.length)]] };
  });

const withStatus = (status: number, other: number): Fault =>
  withResponse((response) => ({ ...response, status: response.status === status ? other : response.status }));

const RUNS = { seed: 1, numRuns: 300, endOnFailure: true };

/** Whether a property of the service fails. */
type Check = (properties: Properties) => Promise<{ readonly failed: boolean }>;

const of =
  (id: string): Check =>
  (properties) =>
    fc.check(properties.ofOperation(operationOf(id)), RUNS);
const ofSequence: Check = (properties) =>
  fc.check(properties.ofSequence(sequences[0] as (typeof sequences)[number]), RUNS);
const ofMethods: Check = (properties) => fc.check(properties.ofOtherMethods(), RUNS);

/** By what is planted: the property that must fail, and the fault. */
const PLANTED: Readonly<Record<string, readonly [Check, Fault]>> = {
  'a status that is not documented': [of('getUser'), withStatus(422, 409)],
  'a required header that is absent': [of('getUser'), withField('ETag')],
  'a header that is not documented': [of('getUser'), withField('X-Powered-By', 'a')],
  'a header out of its schema': [of('health'), withField('X-Content-Type-Options', 'sniff')],
  'another media type': [of('health'), withField('Content-Type', 'text/plain')],
  'a member out of its schema': [
    of('getUser'),
    withJson('GET', 200, (user) => ({ ...user, is_active: 'yes' })),
  ],
  'a member that is absent': [of('createUser'), withJson('POST', 201, ({ email: _, ...user }) => user)],
  'a problem of another status': [of('getUser'), withJson('GET', 422, (one) => ({ ...one, status: 400 }))],
  'a problem of another path': [of('getUser'), withJson('GET', 422, (one) => ({ ...one, instance: '/' }))],
  'a request ID that was not sent': [of('health'), withField('X-Request-ID', crypto.randomUUID())],
  'a token that is not looked at': [
    of('listUsers'),
    async (request, sent) => {
      const fields = [['Authorization', `Bearer ${await service.issuer.sign()}`] as const];
      return sent({ ...request, fields });
    },
  ],
  'a cursor that leads nowhere': [
    of('listUsers'),
    withField('Link', '</api/v1/users/?cursor=x>; rel="next"'),
  ],
  'a query that is not looked at': [
    of('listUsers'),
    (request, sent) => sent({ ...request, target: request.target.replace(/\?.*/, '') }),
  ],
  'a user that is not there after its creation': [
    ofSequence,
    (request, sent) =>
      sent(request.method === 'GET' ? { ...request, target: request.target.replace(/.$/, '0') } : request),
  ],
  'a deletion that deletes nothing': [
    ofSequence,
    async (request, sent) => {
      if (request.method !== 'DELETE') return sent(request);
      const response = await sent({ ...request, method: 'GET' });
      if (response.status !== 200) return response;
      const kept = response.fields.filter(([name]) => /^(x-|cache|date)/i.test(name));
      return { ...response, status: 204, content: Buffer.alloc(0), fields: kept };
    },
  ],
  'an update that is not in the next read': [
    ofSequence,
    withJson('GET', 200, (value) => (Array.isArray(value) ? value : { ...value, is_active: true })),
  ],
  'an update whose value is lost': [
    ofSequence,
    withJson('PATCH', 200, (user) => ({ ...user, full_name: null })),
  ],
  'an update without a change': [
    ofSequence,
    withJson('GET', 200, (value) =>
      Array.isArray(value) ? value.filter(({ type }) => type !== 'user.updated') : value,
    ),
  ],
  'a method that is served without an operation': [ofMethods, withMethod('PURGE', 'OPTIONS')],
  'a method that is missing in Allow': [ofMethods, withField('Allow', 'GET, OPTIONS')],
};

test.each(Object.entries(PLANTED))('the generated requests find %s', async (_title, [check, fault]) => {
  const tokens = { token: await service.issuer.sign(), roleless: await service.issuer.tokenFor('other') };
  const sent: Send = (request) => exchange(service.url, request);
  const faulty = new Properties({ send: (request) => fault(request, sent), tokens: () => tokens });
  const { failed } = await check(faulty);
  expect(failed).toBe(true);
});
