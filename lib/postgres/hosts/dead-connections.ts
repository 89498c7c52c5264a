import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Settings } from '../../settings/settings.ts';
import { clientConfig } from './connection-config.ts';
import { Session } from './session.ts';

/** In milliseconds: how often sessions are looked at, how long one may be silent, and how often PostgreSQL is asked. */
const CHECK_INTERVAL_MS = 100;
const MAX_SILENCE_MS = 250;
const MIN_ASK_INTERVAL_MS = 500;

/** In milliseconds: an answer that has arrived may not have been read yet. */
const READ_DELAY_MS = 20;

/** In milliseconds. */
const TIME_LIMIT_MS = 500;

/** When bytes last came, since when an answer has been awaited, and whether PostgreSQL has said that it runs a statement. */
type Watched = { heardAt: number; awaitsSince: number | undefined; isRunning: boolean };

/**
 * Closes sessions whose connection is dead; returns what begins to watch one. A network may forget a connection without a
 * word to either end. So when an answer does not come, PostgreSQL is asked by another session whether it runs the
 * statement. If it does not, the connection is dead and is closed at once, together with all that have been silent for as
 * long: they are not tried one after the other. `onSilence` is called when PostgreSQL cannot be asked.
 */
export function closeDeadConnections(
  postgres: Settings['postgres'],
  onSilence: () => void = () => {},
): (session: Session) => void {
  const all = new Map<Session, Watched>();
  let timer: NodeJS.Timeout | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  // It belongs to no request.
  const checkOutside = AsyncResource.bind(check);

  function check(): void {
    const now = performance.now();
    if (all.size === 0) timer = void clearInterval(timer);
    for (const [session, watched] of all) {
      watched.awaitsSince = session.awaitsAnswer ? (watched.awaitsSince ?? now) : undefined;
    }
    const isSuspect = ({ heardAt, awaitsSince = now, isRunning }: Watched) =>
      !isRunning && now - Math.max(heardAt, awaitsSince) >= MAX_SILENCE_MS;
    const suspects = [...all].filter(([, watched]) => isSuspect(watched));
    if (suspects.length === 0 || now - askedAt < MIN_ASK_INTERVAL_MS) return;
    askedAt = now;
    for (const some of Map.groupBy(suspects, ([{ host, port }]) => `${host}:${port}`).values())
      void closeDead(new Map(some), now);
  }

  async function closeDead(suspects: ReadonlyMap<Session, Watched>, since: number): Promise<void> {
    const idle = await findIdle([...suspects.keys()], postgres).catch(() => undefined);
    if (!idle) return onSilence();
    for (const [session, watched] of suspects) watched.isRunning = !idle.has(session);
    await sleep(READ_DELAY_MS);
    const dead = [...suspects].filter(
      ([session, { heardAt }]) => heardAt < since && session.awaitsAnswer && idle.has(session),
    );
    if (dead.length === 0) return;
    for (const [session, { heardAt }] of all) {
      if (session.awaitsAnswer || heardAt > since - MAX_SILENCE_MS) continue;
      // The pool takes an error for the end of an idle connection.
      session.emit('error', new Error('the connection is dead'));
      session.abandon();
    }
    for (const [session] of dead) session.abandon();
  }

  return (session) => {
    if (!session.identity) return;
    const watched: Watched = { heardAt: performance.now(), awaitsSince: undefined, isRunning: false };
    all.set(session, watched);
    session.once('end', () => all.delete(session));
    session.connection.stream.on('data', () => {
      watched.heardAt = performance.now();
      watched.isRunning = false;
    });
    timer ??= setInterval(checkOutside, CHECK_INTERVAL_MS).unref();
  };
}

/**
 * The sessions of these, all at one host, for which PostgreSQL runs no statement. A name may lead to several servers:
 * nothing is concluded from the answer of a server that started at another time.
 *
 * @throws when PostgreSQL cannot be asked
 */
async function findIdle(
  sessions: readonly Session[],
  postgres: Settings['postgres'],
): Promise<ReadonlySet<Session>> {
  const [{ host, port }] = sessions as readonly [Session];
  const asking = new Session(clientConfig({ ...postgres, servers: [{ host, port }] }), postgres);
  const limit = setTimeout(() => asking.abandon(), TIME_LIMIT_MS);
  try {
    await asking.openInTime(TIME_LIMIT_MS);
    const { rows } = await asking.query(
      "select pid from pg_stat_activity where pid = any($1) and state <> 'idle'",
      [sessions.map(({ identity }) => identity?.processId)],
    );
    const busy = new Set(rows.map(({ pid }) => Number(pid)));
    const isIdle = ({ identity }: Session) =>
      identity?.serverStarted === asking.identity?.serverStarted && !busy.has(identity?.processId ?? 0);
    return new Set(sessions.filter(isIdle));
  } finally {
    clearTimeout(limit);
    asking.abandon();
  }
}
