import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import type { Change } from './changes.ts';
import { faultsInHistory, type StoredUser } from './history.ts';
import { type Asked, type Entry, Ledger } from './ledger.ts';

const ID = randomUUID();
const EMAIL = 'ada@example.com';
const TIME = '2026-11-20T09:41:01.000Z';
const user: StoredUser = { id: ID, email: EMAIL, full_name: null, is_active: true, version: 1 };

type Given = { readonly status?: number; readonly version?: number; readonly headers?: Asked['headers'] };

/** Books of requests to one user that were answered one after the other. */
function openBooks() {
  const ledger = new Ledger();
  const changes: Change[] = [];
  let clock = 0;

  function enter(asked: Asked, { status = 200, version = 1, headers }: Given = {}, body = {}): Entry {
    clock += 2;
    return ledger.enter({
      ...asked,
      ...(headers && { headers }),
      ...{ requestId: randomUUID(), method: '', path: '', sent: clock, answered: clock + 1, status },
      isLost: status === 0,
      responseHeaders: {
        etag: `"${version}"`,
        ...(headers?.replayed && { 'idempotency-replayed': 'true' }),
      },
      body: JSON.stringify({ ...user, updated_at: TIME, ...body }),
    });
  }

  const update = (full_name: string, given: Given = {}) =>
    enter(
      { operation: 'update', userId: ID, fields: { full_name } },
      { version: 2, ...given },
      { full_name },
    );
  const create = (given: Given = {}) =>
    enter({ operation: 'create', fields: { email: EMAIL } }, { status: 201, ...given });
  const remove = (given: Given = {}) => enter({ operation: 'delete', userId: ID }, { status: 204, ...given });
  const read = (full_name: string | null, given: Given = {}) =>
    enter({ operation: 'read', userId: ID }, given, { full_name });

  /** Enters the change of a request. */
  function change({ operation, requestId }: Entry, version: number, changed?: readonly string[]): void {
    const named = changed ?? (operation === 'update' ? ['full_name'] : []);
    const data = { version, changed: named, actor: 'svc', request_id: requestId };
    const type = `user.${operation}d` as Change['type'];
    changes.push({ id: `${changes.length + 1}-00000000`, type, subject: ID, time: TIME, data });
  }

  return { ledger, changes, create, update, remove, read, change };
}

type Books = ReturnType<typeof openBooks>;

/** Users that are stored at the end. */
type Story = (books: Books) => readonly StoredUser[];

const ADA = { ...user, full_name: 'Ada', version: 2 };

function createAndUpdate({ create, update, change }: Books): Entry {
  change(create(), 1);
  const updated = update('Ada');
  change(updated, 2);
  return updated;
}

const RIGHT: Readonly<Record<string, Story>> = {
  'one request after the other': (books) => {
    createAndUpdate(books);
    books.read('Ada', { version: 2 });
    books.change(books.remove(), 3);
    books.read(null, { status: 404 });
    return [];
  },
  'a create in doubt, which did not happen': ({ create }) => {
    create({ status: 503 });
    return [];
  },
  'a write that was answered 503, and happened after one that began later': ({
    create,
    update,
    read,
    change,
  }) => {
    change(create(), 1);
    const [late, next] = [update('Ada', { status: 503 }), update('Eve')];
    read('Eve', { version: 2 });
    change(next, 2);
    change(late, 3);
    return [{ ...ADA, version: 3 }];
  },
};

test.each(Object.entries(RIGHT))('A history has no fault: %s', (_, story) => {
  const books = openBooks();
  const stored = story(books);

  expect(faultsInHistory(books.ledger, books.changes, stored)).toEqual([]);
});

/** Each story breaks a promise, which the last words name. */
const BROKEN: Readonly<Record<string, readonly [Story, RegExp]>> = {
  'an acknowledged create that is lost': [
    ({ create }) => {
      create();
      return [];
    },
    /create .* has 0 changes/,
  ],
  'an acknowledged create that is in the feed alone': [
    ({ create, change }) => {
      change(create(), 1);
      return [];
    },
    /is not in the table as its version 1/,
  ],
  'a user that has risen again': [
    (books) => {
      createAndUpdate(books);
      books.change(books.remove(), 3);
      return [ADA];
    },
    /is not in the table as its version 3/,
  ],
  'an update that is lost': [
    ({ create, update, change }) => {
      change(create(), 1);
      update('Ada');
      return [user];
    },
    /update .* has 0 changes/,
  ],
  'an update that happened twice': [
    (books) => {
      books.change(createAndUpdate(books), 3, []);
      return [{ ...ADA, version: 3 }];
    },
    /has 2 changes/,
  ],
  'an altered value': [
    (books) => {
      createAndUpdate(books);
      return [{ ...ADA, full_name: 'Eve' }];
    },
    /is not in the table as its version 2/,
  ],
  'a user that was not asked for': [() => [user], /in the table, and no change names it/],
  'a change that was not asked for': [
    ({ create, change, ledger }) => {
      change(create(), 1);
      ledger.entries.length = 0;
      return [];
    },
    /of a request that was not sent/,
  ],
  'a refused write that happened': [
    ({ create, update, change }) => {
      change(create(), 1);
      change(update('Ada', { status: 412 }), 2);
      return [user];
    },
    /was refused with 412/,
  ],
  'a write after one that began when it was answered': [
    ({ create, update, change }) => {
      change(create(), 1);
      const [second, third] = [update('Ada', { version: 3 }), update('Eve', { version: 2 })];
      change(third, 2);
      change(second, 3);
      return [{ ...ADA, version: 3 }];
    },
    /comes after one that began when it was answered/,
  ],
  'a version that is left out': [
    ({ create, update, change }) => {
      change(create(), 1);
      change(update('Ada', { version: 3 }), 3);
      return [{ ...ADA, version: 3 }];
    },
    /has version 3 after 1/,
  ],
  'a change after the deletion': [
    ({ create, remove, update, change }) => {
      change(create(), 1);
      change(remove(), 2);
      change(update('Ada', { version: 3 }), 3);
      return [];
    },
    /comes after its deletion/,
  ],
  'a change that names another field': [
    ({ create, update, change }) => {
      change(create(), 1);
      change(update('Ada'), 2, ['email']);
      return [ADA];
    },
    /changed full_name, and names email/,
  ],
  'a position that is given twice': [
    (books) => {
      createAndUpdate(books);
      const [, second] = books.changes as [Change, Change];
      books.changes[1] = { ...second, id: '1-11111111' };
      return [ADA];
    },
    /position 1-11111111 comes after 1/,
  ],
  'a read of what had been overtaken': [
    (books) => {
      createAndUpdate(books);
      books.read(null);
      return [ADA];
    },
    /has never been so/,
  ],
  'a 404 of a user that was there': [
    (books) => {
      createAndUpdate(books);
      books.read(null, { status: 404 });
      return [ADA];
    },
    /404 .*, though it was there/,
  ],
  'a 412 of the current version': [
    (books) => {
      createAndUpdate(books);
      books.update('Eve', { status: 412, headers: { 'if-match': '"2"' } });
      return [ADA];
    },
    /412 .*, though it had version 2 all the while/,
  ],
  'a write on another version than its If-Match names': [
    ({ create, update, change }) => {
      change(create(), 1);
      change(update('Ada', { headers: { 'if-match': '"7"' } }), 2);
      return [ADA];
    },
    /was for version 7, not 2/,
  ],
  'a 409 of a free address': [
    ({ create }) => {
      create({ status: 409 });
      return [];
    },
    /409 .*, though no user had ada@example.com/,
  ],
  'a 410 of a user that was not deleted': [
    ({ create, change }) => {
      change(create({ headers: { 'idempotency-key': 'one' } }), 1);
      create({ status: 410, headers: { 'idempotency-key': 'one' } });
      return [user];
    },
    /410 .*, though it was not deleted/,
  ],
  'a replay of what has never been': [
    ({ create, change }) => {
      change(create({ headers: { 'idempotency-key': 'one' } }), 1);
      create({ version: 5, headers: { 'idempotency-key': 'one', replayed: 'true' } });
      return [user];
    },
    /the replay of .* has never been so/,
  ],
};

test.each(Object.entries(BROKEN))('A history has a fault: %s', (_, [story, fault]) => {
  const books = openBooks();
  const stored = story(books);

  expect(faultsInHistory(books.ledger, books.changes, stored)).toContainEqual(expect.stringMatching(fault));
});
