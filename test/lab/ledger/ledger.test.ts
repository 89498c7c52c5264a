import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Change } from './changes.ts';
import { faultsInHistory } from './history.ts';
import { type Asked, type Entry, Ledger } from './ledger.ts';
import { faultsInTable, type StoredUser } from './stored-users.ts';

const ID = randomUUID();
const EMAIL = 'ada@example.com';
const TIME = '2026-11-20T09:41:01.000Z';
const user: StoredUser = { id: ID, email: EMAIL, full_name: null, is_active: true, version: 1 };

/** Books of requests that were answered one after the other. */
function books() {
  const ledger = new Ledger();
  const changes: Change[] = [];
  let clock = 0;

  function enter(asked: Asked, status: number, answer: object = {}, version = 1): Entry {
    clock += 2;
    return ledger.enter({
      ...asked,
      requestId: randomUUID(),
      method: 'POST',
      path: '/api/v1/users/',
      sent: clock,
      answered: clock + 1,
      status,
      isLost: status === 0,
      answerHeaders: { etag: `"${version}"` },
      body: JSON.stringify(answer),
    });
  }

  function tell(entry: Entry, type: Change['type'], version: number, changed: readonly string[] = []): void {
    const data = { version, changed, actor: 'svc', request_id: entry.requestId };
    changes.push({ id: String(changes.length + 1), type, subject: ID, time: TIME, data });
  }

  return {
    ledger,
    changes,
    enter,
    tell,
    create(status = 201) {
      const entry = enter({ operation: 'create', fields: { email: EMAIL } }, status, {
        ...user,
        updated_at: TIME,
      });
      return entry;
    },
    update: (full_name: string, status = 200, version = 2) =>
      enter(
        { operation: 'update', userId: ID, fields: { full_name } },
        status,
        { ...user, full_name, updated_at: TIME },
        version,
      ),
    remove: (status = 204) => enter({ operation: 'delete', userId: ID }, status),
  };
}

describe('the ledger finds in the table', () => {
  test('nothing wrong where nothing is', () => {
    const { ledger, create, update } = books();
    create();
    update('Ada');

    expect(faultsInTable(ledger, [{ ...user, full_name: 'Ada', version: 2 }])).toEqual([]);
  });

  test('a user that was acknowledged and is missing', () => {
    const { ledger, create } = books();
    create();

    expect(faultsInTable(ledger, [])).toEqual([`${ID} was acknowledged, and is not there`]);
  });

  test('a user that has risen again', () => {
    const { ledger, create, remove } = books();
    create();
    remove();

    expect(faultsInTable(ledger, [user])).toEqual([`${ID} was deleted, and has risen again`]);
  });

  test('an update that is missing, doubled or altered', () => {
    const { ledger, create, update } = books();
    create();
    update('Ada');

    expect(faultsInTable(ledger, [user])).toEqual([
      `${ID} has version 1, after 1 updates`,
      `${ID} has full_name null, and was left with Ada`,
    ]);
    expect(faultsInTable(ledger, [{ ...user, full_name: 'Ada', version: 3 }])).toEqual([
      `${ID} has version 3, though only 2 were asked for`,
    ]);
    expect(faultsInTable(ledger, [{ ...user, full_name: 'Eve', version: 2 }])).toEqual([
      `${ID} has full_name Eve, and was left with Ada`,
    ]);
  });

  test('a user that nobody asked for; one in doubt is none', () => {
    const { ledger, create } = books();

    expect(faultsInTable(ledger, [user])).toHaveLength(1);
    create(503);
    expect(faultsInTable(ledger, [user])).toEqual([]);
    expect(faultsInTable(ledger, [])).toEqual([]);
  });
});

describe('the history of a user', () => {
  test('fits answers, changes and table that tell the same', () => {
    const { ledger, changes, create, update, remove, tell } = books();
    tell(create(), 'user.created', 1);
    tell(update('Ada'), 'user.updated', 2, ['full_name']);
    tell(remove(), 'user.deleted', 3);

    expect(faultsInHistory(ledger, changes, [])).toEqual([]);
  });

  test('has a fault where an acknowledged write has no change, or two', () => {
    const missing = books();
    missing.tell(missing.create(), 'user.created', 1);
    missing.update('Ada');
    expect(faultsInHistory(missing.ledger, missing.changes, [user])).toHaveLength(2);

    const doubled = books();
    doubled.tell(doubled.create(), 'user.created', 1);
    const update = doubled.update('Ada');
    doubled.tell(update, 'user.updated', 2, ['full_name']);
    doubled.tell(update, 'user.updated', 3);
    const stored = { ...user, full_name: 'Ada', version: 3 };
    expect(faultsInHistory(doubled.ledger, doubled.changes, [stored])).toEqual([
      expect.stringMatching(/has 2 changes$/),
    ]);
  });

  test('has a fault where a refused write has a change', () => {
    const { ledger, changes, create, update, tell } = books();
    tell(create(), 'user.created', 1);
    tell(update('Ada', 412), 'user.updated', 2, ['full_name']);

    expect(faultsInHistory(ledger, changes, [user])).toContain(`change 2 of ${ID} was refused with 412`);
  });

  test('has a fault where a change stands before one that had been answered when it began', () => {
    const { ledger, changes, create, update, tell } = books();
    const first = create();
    const [second, third] = [update('Ada', 200, 3), update('Eve', 200, 2)];
    tell(first, 'user.created', 1);
    tell(third, 'user.updated', 2, ['full_name']);
    tell(second, 'user.updated', 3, ['full_name']);

    expect(faultsInHistory(ledger, changes, [{ ...user, full_name: 'Ada', version: 3 }])).toEqual([
      'change 3 comes after one that began when it was answered',
    ]);
  });

  test('fits a write that was answered 503, and happened after one that began later', () => {
    const { ledger, changes, create, update, enter, tell } = books();
    const first = create();
    const [second, third] = [update('Ada', 503, 3), update('Eve', 200, 2)];
    enter({ operation: 'read', userId: ID }, 200, { ...user, full_name: 'Eve', updated_at: TIME }, 2);
    tell(first, 'user.created', 1);
    tell(third, 'user.updated', 2, ['full_name']);
    tell(second, 'user.updated', 3, ['full_name']);

    expect(faultsInHistory(ledger, changes, [{ ...user, full_name: 'Ada', version: 3 }])).toEqual([]);
  });

  test('has a fault where a read tells what had been overtaken', () => {
    const { ledger, changes, create, update, enter, tell } = books();
    tell(create(), 'user.created', 1);
    tell(update('Ada'), 'user.updated', 2, ['full_name']);
    enter({ operation: 'read', userId: ID }, 200, { ...user, updated_at: TIME }, 1);

    expect(faultsInHistory(ledger, changes, [{ ...user, full_name: 'Ada', version: 2 }])).toEqual([
      expect.stringMatching(/has never been so/),
    ]);
  });
});
