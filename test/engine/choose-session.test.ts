import { describe, expect, test } from 'vitest';
import { chooseSession } from '../../lib/postgres/sessions/choose-session.ts';
import type { SessionState } from '../../lib/postgres/sessions/session.ts';

/** Sessions by their states. One that is busy has a read of the executor `own` in progress, `writing` a write. */
const SESSIONS = {
  idle: { state: 'idle', length: 0, isWriting: false, usedBy: 'own' },
  busy: { state: 'busy', length: 1, isWriting: false, usedBy: 'own' },
  busier: { state: 'busy', length: 2, isWriting: false, usedBy: 'own' },
  writing: { state: 'busy', length: 1, isWriting: true, usedBy: 'own' },
  other: { state: 'busy', length: 1, isWriting: false, usedBy: 'other' },
  stuck: { state: 'stuck', length: 1, isWriting: true, usedBy: 'own' },
  late: { state: 'late', length: 1, isWriting: true, usedBy: 'own' },
} as const satisfies Record<string, { readonly state: SessionState; readonly [name: string]: unknown }>;

type Name = keyof typeof SESSIONS;

/** The statement, its executor's sessions, those of the others, the depth, and the session that it gets. */
type Case = readonly [
  'read' | 'write',
  readonly Name[],
  readonly Name[],
  number,
  Name | 'open another' | 'wait' | 'refuse',
];

function choose(
  [kind, own, others, depth]: Case,
  isMissing: boolean,
  isFull = false,
  isAnotherWaiting = false,
) {
  const sessionsOf = (names: readonly Name[]) => names.map((name) => ({ name, ...SESSIONS[name] }));
  const given = { own: new Set(sessionsOf(own)), depth, isMissing, isFull, isAnotherWaiting };
  const choice = chooseSession(kind === 'read', 'own', {
    ...given,
    all: new Set([...given.own, ...sessionsOf(others)]),
  });
  return typeof choice === 'string' ? choice : choice.name;
}

describe('while sessions may be opened,', () => {
  test.each<Case>([
    ['read', [], ['idle'], 64, 'open another'],
    ['read', ['busy'], [], 64, 'open another'],
    ['write', ['writing', 'idle'], [], 3, 'idle'],
    ['write', ['stuck', 'late'], [], 1, 'open another'],
  ])('a %s with the sessions %j, and %j of others, at depth %s: %s', (...one) => {
    expect(choose(one, true)).toBe(one[4]);
  });
});

describe('with few sessions,', () => {
  test.each<Case>([
    ['read', ['busier', 'busy'], ['idle'], 64, 'busy'],
    ['read', ['busy'], [], 1, 'wait'],
    ['write', ['idle'], [], 1, 'idle'],
    ['write', ['idle', 'writing'], [], 1, 'wait'],
    ['read', ['idle', 'writing'], [], 1, 'idle'],
  ])('a %s with the sessions %j, and %j of others, at depth %s: %s', (...one) => {
    expect(choose(one, false)).toBe(one[4]);
  });
});

describe('while a standby is away, and writes wait for their commits,', () => {
  test.each<Case>([
    ['write', ['stuck', 'stuck', 'idle'], [], 1, 'refuse'],
    ['write', ['stuck', 'stuck'], ['idle'], 3, 'refuse'],
    ['read', ['stuck', 'idle'], [], 1, 'idle'],
    ['read', ['stuck', 'stuck'], ['idle'], 1, 'idle'],
  ])('a %s with the sessions %j, and %j of others, at depth %s: %s', (...one) => {
    expect(choose(one, false)).toBe(one[4]);
  });
});

describe('while PostgreSQL is full, and sessions are borrowed,', () => {
  test.each<Case>([
    ['write', [], ['idle'], 3, 'idle'],
    ['write', [], ['other', 'idle'], 3, 'idle'],
    ['write', [], ['writing', 'idle'], 3, 'wait'],
    ['read', ['busy'], ['other'], 64, 'busy'],
    ['read', [], ['other'], 64, 'wait'],
  ])('a %s with the sessions %j, and %j of others, at depth %s: %s', (...one) => {
    expect(choose(one, true, true)).toBe(one[4]);
  });

  test('no statement is added to a busy session if another executor waits', () => {
    expect(choose(['read', ['busy'], [], 64, 'wait'], true, true, true)).toBe('wait');
  });
});
