import { expect, test } from 'vitest';
import { expectEndInOrder } from './end-in-order.ts';
import { refusal, type ServiceResponse, success, USERS, user } from './responses.ts';
import { createServiceResponse } from './service-response.ts';
import { BUSY_S, until } from './until.ts';

const endWith = (code: number | null, signal: string | null, seconds = 0) =>
  expectEndInOrder({ signal: () => true, exited: Promise.resolve({ code, signal }) }, seconds - BUSY_S);

test('an end of a process is in order with exit code 0, without a signal, and in time', async () => {
  await endWith(0, null, 1);
  await expect(endWith(1, null, 1)).rejects.toThrow('{ code: 1');
  await expect(endWith(null, 'SIGTERM', 1)).rejects.toThrow('SIGTERM');
  await expect(endWith(0, null)).rejects.toThrow('to be less than');
});

test('a wait for what never happens fails, and says what it is', async () => {
  await expect(until('the event', () => false, { seconds: 0.05 })).rejects.toThrow('the event');
});

const everyHeader = {
  'x-content-type-options': 'nosniff',
  'x-request-id': '7d9a3f7e-8c1b-4d5e-9f60-1a2b3c4d5e6f',
};
const ada = {
  id: '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70',
  email: 'ada@example.com',
  full_name: null,
  is_active: true,
  created_at: '2026-01-02T03:04:05.678Z',
  updated_at: '2026-01-02T03:04:05.678Z',
};
const faults = (...places: readonly object[]) =>
  places.map((place) => ({ ...place, detail: 'must be a UUID' }));

test.each<readonly [string, ServiceResponse, ServiceResponse]>([
  [
    'success',
    success(200, user({ email: ada.email }), { etag: '"1"' }),
    {
      status: 200,
      headers: {
        ...everyHeader,
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'private, no-cache',
        etag: '"1"',
      },
      body: ada,
    },
  ],
  [
    'refusal',
    refusal('validation_error', USERS, { errors: ['#/email', 'limit', 'If-Match'] }),
    {
      status: 422,
      headers: {
        ...everyHeader,
        'content-type': 'application/problem+json',
        'cache-control': 'no-store',
      },
      body: {
        type: 'urn:svc:error:validation_error',
        title: 'Unprocessable Entity',
        status: 422,
        detail: 'Some values are not valid.',
        instance: USERS,
        errors: faults({ pointer: '#/email' }, { parameter: 'limit' }, { header: 'If-Match' }),
      },
    },
  ],
])('a response is a %s only with its status, and with each header and member', (_name, expected, right) => {
  const { headers, body } = right;
  const changed = (all: object, value: unknown) =>
    Object.keys(all).map((name) => ({ ...all, [name]: value }));

  expect(right).toEqual(expected);
  expect({ ...right, status: 201 }).not.toEqual(expected);
  for (const value of ['', undefined]) {
    for (const other of changed(headers, value)) expect({ ...right, headers: other }).not.toEqual(expected);
    for (const other of changed(body as object, value))
      expect({ ...right, body: other }).not.toEqual(expected);
  }
});

test('a refusal has these faults in their order, and no others', () => {
  const { body } = refusal('validation_error', USERS, { errors: ['#/email', 'limit'] });
  const [email, limit] = [{ pointer: '#/email' }, { parameter: 'limit' }];

  expect(body).toMatchObject({ errors: faults(email, limit) });
  for (const others of [[limit, email], [email], [email, limit, limit], [email, { header: 'limit' }]])
    expect({ errors: faults(...others) }).not.toMatchObject({ errors: (body as { errors: unknown }).errors });
});

test('a response has its Content-Length only if it is not that of the body', () => {
  const headersOf = (length: string) =>
    createServiceResponse(200, { 'content-length': length }, Buffer.from('\u00e9')).headers;

  expect(headersOf('2')).toEqual({});
  for (const wrong of ['1', '3', '02']) expect(headersOf(wrong)).toEqual({ 'content-length': wrong });
});
