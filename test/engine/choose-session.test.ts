import { expect, test } from 'vitest';
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

/** Unless a situation says otherwise, few sessions are open, and none may be opened. */
const SITUATIONS = {
  'while sessions may be opened': { isMissing: true },
  'with few sessions': {},
  'while commits wait for a standby': {},
  'while PostgreSQL is full': { isMissing: true, isFull: true },
  'while another executor waits, too': { isMissing: true, isFull: true, isAnotherWaiting: true },
} as const;

/** The statement, its executor's sessions, those of the others, the depth, and the session that it gets. */
type Statement = readonly ['read' | 'write', readonly Name[], readonly Name[], number, string];

const sessionsOf = (names: readonly Name[]) => names.map((name) => ({ name, ...SESSIONS[name] }));

test.each<readonly [keyof typeof SITUATIONS, ...Statement]>([
  ['while sessions may be opened', 'read', [], ['idle'], 64, 'open another'],
  ['while sessions may be opened', 'read', ['busy'], [], 64, 'open another'],
  ['while sessions may be opened', 'write', ['writing', 'idle'], [], 3, 'idle'],
  ['while sessions may be opened', 'write', ['stuck', 'late'], [], 1, 'open another'],
  ['with few sessions', 'read', ['busier', 'busy'], ['idle'], 64, 'busy'],
  ['with few sessions', 'read', ['busy'], [], 1, 'wait'],
  ['with few sessions', 'write', ['idle'], [], 1, 'idle'],
  ['with few sessions', 'write', ['idle', 'writing'], [], 1, 'wait'],
  ['with few sessions', 'read', ['idle', 'writing'], [], 1, 'idle'],
  ['while commits wait for a standby', 'write', ['stuck', 'stuck', 'idle'], [], 1, 'refuse'],
  ['while commits wait for a standby', 'write', ['stuck', 'stuck'], ['idle'], 3, 'refuse'],
  ['while commits wait for a standby', 'read', ['stuck', 'idle'], [], 1, 'idle'],
  ['while commits wait for a standby', 'read', ['stuck', 'stuck'], ['idle'], 1, 'idle'],
  ['while PostgreSQL is full', 'write', [], ['idle'], 3, 'idle'],
  ['while PostgreSQL is full', 'write', [], ['other', 'idle'], 3, 'idle'],
  ['while PostgreSQL is full', 'write', [], ['writing', 'idle'], 3, 'wait'],
  ['while PostgreSQL is full', 'read', ['busy'], ['other'], 64, 'busy'],
  ['while PostgreSQL is full', 'read', [], ['other'], 64, 'wait'],
  ['while another executor waits, too', 'read', ['busy'], [], 64, 'wait'],
])('%s: a %s with the sessions %j, and %j of others, at depth %s: %s', (situation, kind, ...given) => {
  const [own, others, depth, expected] = given;
  const mine = sessionsOf(own);
  const choice = chooseSession(kind === 'read', 'own', {
    ...{ own: new Set(mine), all: new Set([...mine, ...sessionsOf(others)]), depth },
    ...{ isMissing: false, isFull: false, isAnotherWaiting: false, ...SITUATIONS[situation] },
  });
  expect(typeof choice === 'string' ? choice : choice.name).toBe(expected);
});
