import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { Ledger, type Operation } from '../lab/ledger/ledger.ts';
import { faultsInRegisters } from './linearizability.ts';

const ID = '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';
const EMAIL = 'ada@example.com';

const REQUEST = /(create|update|delete|read) (\d+)-(\d+) (\d+)(?: (\w+) v(\d))?(?: if(\d))?( replayed)?/g;

/** The history from a text: operation, moments of request and response, status, name and version of the user, version of If-Match. */
function faultsIn(history: string): readonly string[] {
  const ledger = new Ledger();
  for (const match of history.matchAll(REQUEST)) {
    const [, operation, sent, answered, status, name = 'null', version = '1', wanted, replayed] = match;
    const full_name = name === 'null' ? null : name;
    const isCreate = operation === 'create';
    ledger.enter({
      operation: operation as Operation,
      ...(isCreate ? { fields: { email: EMAIL } } : { userId: ID, fields: { full_name } }),
      headers: {
        ...(isCreate && { 'idempotency-key': 'one' }),
        ...(wanted && { 'if-match': `"${wanted}"` }),
      },
      ...{ requestId: randomUUID(), method: '', path: '', sent: Number(sent), answered: Number(answered) },
      status: Number(status),
      isLost: status === '0',
      responseHeaders: { etag: `"${version}"`, ...(replayed && { 'idempotency-replayed': 'true' }) },
      body: JSON.stringify({ id: ID, email: EMAIL, full_name, is_active: true }),
    });
  }
  return faultsInRegisters(ledger);
}

const UPDATED = 'create 1-2 201, update 3-4 200 Ada v2 if1, update 5-6 412 Eve v1 if1, read 7-8 200 Ada v2';
const LOST = 'create 1-9 0, update 3-4 200 Ada v2, update 5-6 200 Eve v3, create 7-8 409, create 7-8 503';

test.each([
  ['one request after the other', `${UPDATED}, delete 9-10 204 if2, read 11-12 404`],
  [
    'concurrent updates',
    'create 1-2 201, update 3-9 200 Ada v3, update 4-8 200 Eve v2, read 10-11 200 Ada v3',
  ],
  ['an update in doubt that never happens', 'create 1-2 201, update 3-4 503 Ada v1, read 5-6 200 null v1'],
  [
    'one that happens late',
    'create 1-2 201, update 3-4 503 Ada v1, read 5-6 200 null v1, read 7-8 200 Ada v2',
  ],
  ['a create without a response, and its replay after an update', `${LOST}, create 2-3 201 replayed`],
])('a history that one order explains has no fault: %s', (_title, history) => {
  expect(faultsIn(history)).toEqual([]);
});

test.each([
  ['a read of an overtaken version', 'update 3-4 200 Ada v2, read 5-6 200 null v1'],
  ['a lost update', 'update 3-6 200 Ada v2 if1, update 4-5 200 Eve v2 if1'],
  ['a version twice', 'update 3-4 200 Ada v2, update 5-6 200 Eve v2'],
  ['409 after the deletion', 'delete 3-4 204, update 5-6 409 Ada v1'],
  ['another version than that of If-Match', 'update 3-4 200 Ada v2, update 5-6 200 Eve v3 if1'],
  ['412 although the version is the one of If-Match', 'update 3-4 412 Ada v1 if1'],
  ['a user that is there after its deletion', 'delete 3-4 204, read 5-6 200 null v1'],
  ['404 although the user was never deleted', 'read 3-4 404'],
  ['two deletions', 'delete 3-6 204, delete 4-5 204'],
  ['a value that no request has written', 'update 3-4 200 Ada v2, read 3-4 200 Eve v2'],
  [
    'an update that is seen, and then not',
    'update 3-4 503 Ada v1, read 5-6 200 Ada v2, read 7-8 200 null v1',
  ],
  ['a read before its value was written', 'read 3-4 200 Ada v2, update 5-6 200 Ada v2'],
])('a planted violation is found after a create: %s', (_title, history) => {
  const found = faultsIn(`create 1-2 201, ${history}`);

  expect(found).toEqual([expect.stringContaining('no order of its requests fits their responses')]);
});
