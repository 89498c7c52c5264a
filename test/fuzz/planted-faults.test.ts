import { expect, test } from 'vitest';
import { fc } from '../stage/fast-check.ts';
import { exchange, type HttpResponse, type RawRequest } from '../stage/raw-request.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { operationOf } from './document.ts';
import { type Properties, propertiesOf } from './properties.ts';

const service = serviceUnderTest(() => ({ SVC_LOG_LEVEL: 'error' }));

type Send = (request: RawRequest) => Promise<HttpResponse>;
type Fault = (request: RawRequest, send: Send) => Promise<HttpResponse>;
type Json = Readonly<Record<string, unknown>>;

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

const RUNS = { seed: 1, numRuns: 300, endOnFailure: true };

type Check = (properties: Properties) => Promise<{ readonly failed: boolean }>;

const of = (id: string) => (properties: Properties) =>
  fc.check(properties.ofOperation(operationOf(id)), RUNS);
const ofMethods: Check = (properties) => fc.check(properties.ofOtherMethods(), RUNS);

/** By what is planted: the property that must fail, and the fault. */
const PLANTED: Readonly<Record<string, readonly [Check, Fault]>> = {
  'a status that is not documented': [
    of('getUser'),
    withResponse((response) => ({ ...response, status: response.status === 422 ? 409 : response.status })),
  ],
  'a required header that is absent': [of('getUser'), withField('ETag')],
  'a header that is not documented': [of('getUser'), withField('X-Powered-By', 'a')],
  'a header out of its schema': [of('health'), withField('Cache-Control', 'no-cache')],
  'another media type': [of('health'), withField('Content-Type', 'text/plain')],
  'a problem of another status': [of('getUser'), withJson('GET', 422, (one) => ({ ...one, status: 400 }))],
  'a member out of its schema': [
    of('getUser'),
    withJson('GET', 200, (user) => ({ ...user, is_active: 'yes' })),
  ],
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
  'a method that is served without an operation': [
    ofMethods,
    (request, sent) => sent(request.method === 'PURGE' ? { ...request, method: 'OPTIONS' } : request),
  ],
  'a method that is missing in Allow': [ofMethods, withField('Allow', 'GET, OPTIONS')],
};

test.each(Object.entries(PLANTED))('the generated requests find %s', async (_title, [check, fault]) => {
  const send: Send = (request) => exchange(service.url, request);
  const faulty = propertiesOf({
    send: (request) => fault(request, send),
    createUser: service.createUser,
    token: await service.issuer.sign(),
    roleless: await service.issuer.tokenFor('other'),
  });
  const { failed } = await check(faulty);
  expect(failed).toBe(true);
});
