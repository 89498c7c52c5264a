import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { type Asked, type Entry, Ledger } from '../lab/ledger/ledger.ts';
import { faultsInRegisters } from './linearizability.ts';

const ID = '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70';
const EMAIL = 'ada@example.com';

type Span = readonly [sent: number, answered: number];

/** A ledger of requests about one user, each with the moments at which it was sent and answered. */
function books() {
  const ledger = new Ledger();

  function enter([sent, answered]: Span, asked: Asked, status: number, seen = {}, replayed = false): Entry {
    const { version = 1, ...fields } = { ...seen } as { version?: number };
    return ledger.enter({
      ...asked,
      requestId: randomUUID(),
      method: '',
      path: '',
      sent,
      answered,
      status,
      isLost: status === 0,
      responseHeaders: { etag: `"${version}"`, ...(replayed && { 'idempotency-replayed': 'true' }) },
      body: JSON.stringify({ id: ID, email: EMAIL, full_name: null, is_active: true, ...fields }),
    });
  }

  const ifMatch = (version?: number) => (version ? { headers: { 'if-match': `"${version}"` } } : {});
  const about = (operation: Asked['operation']) => ({ operation, userId: ID });
  return {
    faults: () => faultsInRegisters(ledger),
    create: (span: Span, status = 201, replayed = false) => {
      const headers = { 'idempotency-key': 'one' };
      enter(span, { operation: 'create', fields: { email: EMAIL }, headers }, status, {}, replayed);
    },
    name: (span: Span, full_name: string, status: number, version = 1, wanted?: number) =>
      enter(span, { ...about('update'), fields: { full_name }, ...ifMatch(wanted) }, status, {
        full_name,
        version,
      }),
    remove: (span: Span, status: number, wanted?: number) =>
      enter(span, { ...about('delete'), ...ifMatch(wanted) }, status),
    read: (span: Span, status: number, full_name: string | null, version: number) =>
      enter(span, about('read'), status, { full_name, version }),
  };
}

const NO_ORDER = [expect.stringContaining('no order of its requests fits their responses')];

describe('a history that one order explains has no fault', () => {
  test('one request after the other', () => {
    const { create, name, read, remove, faults } = books();
    create([1, 2]);
    name([3, 4], 'Ada', 200, 2, 1);
    name([5, 6], 'Eve', 412, 1, 1);
    read([7, 8], 200, 'Ada', 2);
    remove([9, 10], 204, 2);
    read([11, 12], 404, null, 0);

    expect(faults()).toEqual([]);
  });

  test('concurrent updates, in the order of their versions', () => {
    const { create, name, read, faults } = books();
    create([1, 2]);
    name([3, 9], 'Ada', 200, 3);
    name([4, 8], 'Eve', 200, 2);
    read([5, 7], 200, null, 1);
    read([10, 11], 200, 'Ada', 3);

    expect(faults()).toEqual([]);
  });

  test.each(['never', 'late'])('an update in doubt that happens %s', (when) => {
    const { create, name, read, faults } = books();
    create([1, 2]);
    name([3, 4], 'Ada', 503);
    read([5, 6], 200, null, 1);
    if (when === 'late') read([7, 8], 200, 'Ada', 2);

    expect(faults()).toEqual([]);
  });

  test('a create without a response, and its replay after an update', () => {
    const { create, name, faults } = books();
    create([1, 9], 0);
    name([3, 4], 'Ada', 200, 2);
    name([5, 6], 'Eve', 200, 3);
    create([7, 8], 409);
    create([7, 8], 503);

    expect(faults()).toEqual(NO_ORDER);

    create([2, 3], 201, true);

    expect(faults()).toEqual([]);
  });
});

/** What is planted after a create. */
const VIOLATIONS: Readonly<Record<string, (about: ReturnType<typeof books>) => void>> = {
  'a read of an overtaken version'({ name, read }) {
    name([3, 4], 'Ada', 200, 2);
    read([5, 6], 200, null, 1);
  },
  'two updates of one version (a lost update)'({ name }) {
    name([3, 6], 'Ada', 200, 2, 1);
    name([4, 5], 'Eve', 200, 2, 1);
  },
  'an update for another version than that of If-Match'({ name }) {
    name([3, 4], 'Ada', 200, 2);
    name([5, 6], 'Eve', 200, 3, 1);
  },
  '412 although the version is the one of If-Match'({ name }) {
    name([3, 4], 'Ada', 412, 1, 1);
  },
  'a user that is there again after its deletion'({ read, remove }) {
    remove([3, 4], 204);
    read([5, 6], 200, null, 1);
  },
  '404 although the user was never deleted'({ read }) {
    read([3, 4], 404, null, 0);
  },
  'two deletions'({ remove }) {
    remove([3, 6], 204);
    remove([4, 5], 204);
  },
  'a value that no request has written'({ name, read }) {
    name([3, 4], 'Ada', 200, 2);
    read([3, 4], 200, 'Eve', 2);
  },
  'an update in doubt that is seen, and then not'({ name, read }) {
    name([3, 4], 'Ada', 503);
    read([5, 6], 200, 'Ada', 2);
    read([7, 8], 200, null, 1);
  },
  'a read before the request that wrote its value'({ name, read }) {
    read([3, 4], 200, 'Ada', 2);
    name([5, 6], 'Ada', 200, 2);
  },
};

test.each(Object.entries(VIOLATIONS))('a planted violation is found: %s', (_title, happens) => {
  const about = books();
  about.create([1, 2]);
  happens(about);

  expect(about.faults()).toEqual(NO_ORDER);
});
