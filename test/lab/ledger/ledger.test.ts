import { expect, test } from 'vitest';
import type { Change } from './changes.ts';
import { createFeedBooks } from './feed.ts';
import { faultsInHistory, type StoredUser } from './history.ts';
import { type Entry, Ledger } from './ledger.ts';

const ID = '11111111-1111-4111-8111-111111111111';
const TIME = '2026-11-20T09:41:01.000Z';
const ADA = { id: ID, email: 'ada@example.com', full_name: 'Ada', is_active: true, version: 2 };
const NOBODY = { ...ADA, full_name: null, version: 1 };

function entryOf(asked: Partial<Entry>, moment: number, user: StoredUser): Entry {
  return {
    ...{ operation: 'read', method: '', path: '', isLost: false, status: 200 },
    ...{ requestId: `request-${moment}`, sent: moment, answered: moment + 1 },
    responseHeaders: { etag: `"${user.version}"` },
    body: JSON.stringify({ ...user, updated_at: TIME }),
    ...asked,
  };
}

function changeOf({ operation, requestId }: Entry, version: number, changed: readonly string[]): Change {
  const type = `user.${operation}d` as Change['type'];
  const data = { version, changed, actor: 'svc', request_id: requestId };
  return { id: `${version}-00000000`, type, subject: ID, time: TIME, data };
}

/** A user is created, updated and read. */
function createHistory() {
  const { email, full_name } = ADA;
  const created = entryOf({ operation: 'create', status: 201, fields: { email } }, 2, NOBODY);
  const updated = entryOf({ operation: 'update', userId: ID, fields: { full_name } }, 4, ADA);
  const read = entryOf({ userId: ID }, 6, ADA);
  const changes = [changeOf(created, 1, []), changeOf(updated, 2, ['full_name'])] as [Change, Change];
  return { entries: [created, updated, read], created, updated, read, changes, stored: [ADA] };
}

type History = ReturnType<typeof createHistory>;

type Alter = (history: History) => unknown;

/** Alters one of its requests. */
function alter(name: 'created' | 'updated' | 'read', values: Partial<Entry>): Alter {
  return (history) => Object.assign(history[name], values);
}

function faultsOf({ entries, changes, stored }: History): readonly string[] {
  const ledger = new Ledger();
  for (const entry of entries) ledger.enter(entry);
  return faultsInHistory(ledger, changes, stored);
}

test.each<[string, Alter]>([
  ['one request after the other', () => {}],
  ['a create in doubt, which did not happen', alter('read', { operation: 'create', status: 503 })],
  [
    'a write that is 503, and happened after a later one',
    ({ created, updated }) => {
      Object.assign(updated, { status: 503, sent: created.sent - 2, answered: created.sent - 1 });
    },
  ],
])('a history has no fault: %s', (_, change) => {
  const history = createHistory();
  change(history);

  expect(faultsOf(history)).toEqual([]);
});

const keyed = { 'idempotency-key': 'one' };

/** Values that no version of the user has. */
const ALTERED = { email: 'eve@example.com', full_name: 'Eve', is_active: false, updated_at: '2026-11-21' };

/** Makes the update a deletion, and the read another request. */
function deleteUser({ updated, read, changes }: History, asked: Partial<Entry>): void {
  Object.assign(updated, { operation: 'delete', status: 204 });
  Object.assign(read, asked);
  changes.splice(1, 1, changeOf(updated, 2, []));
}

test.each<[string, Alter, RegExp]>([
  ['a lost update', ({ changes }) => changes.pop(), /update .* has 0 changes/],
  ['a user in the feed alone', ({ stored }) => stored.pop(), /is not in the table as its version 2/],
  [
    'an update that happened twice',
    ({ changes, updated }) => changes.push(changeOf(updated, 3, [])),
    /has 2 changes/,
  ],
  [
    'an altered value',
    ({ stored }) => stored.splice(0, 1, { ...ADA, full_name: 'Eve' }),
    /is not in the table/,
  ],
  ['a user that no change names', ({ stored }) => stored.push({ ...ADA, id: '2' }), /no change names it/],
  ['a change without a request', ({ entries }) => entries.shift(), /of a request that was not sent/],
  ['a refused write that happened', alter('updated', { status: 412 }), /was refused with 412/],
  ['a write before an earlier one', alter('created', { sent: 9 }), /began when it was answered/],
  [
    'a version that is left out',
    ({ changes, updated }) => changes.splice(1, 1, changeOf(updated, 3, ['full_name'])),
    /has version 3 after 1/,
  ],
  [
    'a change after the deletion',
    (history) => {
      deleteUser(history, { operation: 'update', fields: {} });
      history.changes.push(changeOf(history.read, 3, []));
    },
    /comes after its deletion/,
  ],
  [
    'a user that is in the table after its deletion',
    (history) => deleteUser(history, { status: 404 }),
    /is not in the table as its version 2/,
  ],
  [
    'a change of another type',
    ({ changes }) => Object.assign(changes[1], { type: 'user.deleted' }),
    /is user.deleted, for a request to update/,
  ],
  ['a change of another user', alter('updated', { userId: 'another' }), /was asked for another/],
  [
    'another field',
    ({ changes, updated }) => changes.splice(1, 1, changeOf(updated, 2, ['email'])),
    /changed full_name, and names email/,
  ],
  [
    'a position that is given twice',
    ({ changes }) => Object.assign(changes[1], { id: '1-1' }),
    /position 1-1 comes after 1/,
  ],
  ['an old read', alter('read', entryOf({ userId: ID }, 6, NOBODY)), /has never been so/],
  ...Object.entries(ALTERED).flatMap(([name, value]) =>
    (['read', 'updated'] as const).map((request): [string, Alter, RegExp] => [
      `a response with another ${name}, ${request}`,
      ({ [request]: entry }) =>
        Object.assign(entry, { body: JSON.stringify({ ...JSON.parse(entry.body), [name]: value }) }),
      request === 'read' ? /read 200 of .* has never been so/ : /update 200 of .* is not as version 2/,
    ]),
  ),
  ['a read of a later write', alter('read', { sent: 1, answered: 3 }), /has never been so/],
  ['a 404 of a user that was there', alter('read', { status: 404 }), /404 .*, though it was there/],
  [
    'a 412 of the current version',
    alter('read', { status: 412, headers: { 'if-match': '"2"' } }),
    /412 .*, though it had version 2/,
  ],
  [
    'a write on another version',
    alter('updated', { headers: { 'if-match': '"7"' } }),
    /was for version 7, not 2/,
  ],
  [
    'a 409 of a free address',
    alter('read', { status: 409, fields: { email: 'a@b' } }),
    /409 .*, though no user had a@b/,
  ],
  [
    'a 409 of its own address',
    alter('read', { status: 409, fields: { email: ADA.email } }),
    /409 .*, though no user had ada@example.com/,
  ],
  [
    'a 410 of the key of another user',
    (history) => deleteUser(history, { status: 410, headers: keyed }),
    /410 .*, though it was not deleted/,
  ],
  [
    'a 410 of a user that was not deleted',
    alter('read', { status: 410, headers: keyed }),
    /410 .*, though it was not deleted/,
  ],
  [
    'a replay of what has never been',
    ({ read }) => {
      const responseHeaders = { etag: '"5"', 'idempotency-replayed': 'true' };
      Object.assign(read, { operation: 'create', status: 201, headers: keyed, responseHeaders });
    },
    /the replay of .* has never been so/,
  ],
])('a history has a fault: %s', (_, change, fault) => {
  const history = createHistory();
  change(history);

  expect(faultsOf(history)).toContainEqual(expect.stringMatching(fault));
});

test.each<[string, number, number, RegExp]>([
  ['that is missing', 200, 0, /^request-4 has 0 changes, not 1 to 1$/],
  ['that comes twice', 200, 2, /^request-4 has 2 changes, not 1 to 1$/],
  ['that was refused', 412, 1, /^1 changes of request-4, which was refused$/],
  ['in doubt that comes twice', 503, 2, /^request-4 has 2 changes, not 0 to 1$/],
])('the books of the feed find a change %s', (_, status, count, fault) => {
  const books = createFeedBooks();
  const { updated } = createHistory();
  books.enter({ ...updated, status }, 1);

  const counts = new Map(count > 0 ? [[updated.requestId, count]] : []);
  expect(books.faults(counts)).toEqual([expect.stringMatching(fault)]);
});
