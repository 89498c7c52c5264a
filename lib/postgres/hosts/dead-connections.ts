import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Settings } from '../../settings/settings.ts';
import { clientConfig } from './connection-config.ts';
import { Session } from './session.ts';

/** How often sessions are checked, how long one may be silent, and how often PostgreSQL is asked. */
const CHECK_INTERVAL_MS = 100;
const MAX_SILENCE_MS = 250;
const MIN_ASK_INTERVAL_MS = 500;

/** A response that has arrived is read within this time. */
const READ_DELAY_MS = 20;

/** Time limit of opening the session that asks, and of its question. */
const TIME_LIMIT_MS = 500;

/** When bytes last came, since when a response is due, and whether PostgreSQL has reported that it runs a statement. */
type Watched = { heardAt: number; awaitsSince: number | undefined; isRunning: boolean };

/**
 * Closes sessions whose connection is dead. A network may forget a connection without a message to either end. If a
 * response does not come, another session asks PostgreSQL whether it runs the statement. If it does not, the connection
 * is dead. It is closed, together with all connections that were silent for as long, so that requests do not try them one
 * after the other.
 */
export class DeadConnectionWatch {
  readonly #postgres: Settings['postgres'];
  readonly #onSilence: () => void;
  readonly #sessions = new Map<Session, Watched>();
  #timer: NodeJS.Timeout | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  /** The check belongs to no request. */
  readonly #check = AsyncResource.bind(() => this.#closeSilent());

  /** `onSilence` is called if PostgreSQL cannot be asked. */
  constructor(postgres: Settings['postgres'], onSilence: () => void = () => {}) {
    this.#postgres = postgres;
    this.#onSilence = onSilence;
  }

  /** Watches an open session until it ends. */
  add(session: Session): void {
    if (!session.identity) return;
    const watched: Watched = { heardAt: performance.now(), awaitsSince: undefined, isRunning: false };
    this.#sessions.set(session, watched);
    session.once('end', () => this.#sessions.delete(session));
    session.connection.stream.on('data', () => {
      watched.heardAt = performance.now();
      watched.isRunning = false;
    });
    this.#timer ??= setInterval(this.#check, CHECK_INTERVAL_MS).unref();
  }

  #closeSilent(): void {
    const now = performance.now();
    if (this.#sessions.size === 0) this.#timer = void clearInterval(this.#timer);
    for (const [session, watched] of this.#sessions)
      watched.awaitsSince = session.awaitsAnswer ? (watched.awaitsSince ?? now) : undefined;
    const isSuspect = ({ heardAt, awaitsSince = now, isRunning }: Watched) =>
      !isRunning && now - Math.max(heardAt, awaitsSince) >= MAX_SILENCE_MS;
    const suspects = [...this.#sessions].filter(([, watched]) => isSuspect(watched));
    if (suspects.length === 0 || now - this.#askedAt < MIN_ASK_INTERVAL_MS) return;
    this.#askedAt = now;
    for (const atHost of Map.groupBy(suspects, ([{ host, port }]) => `${host}:${port}`).values())
      void this.#closeDead(new Map(atHost), now);
  }

  async #closeDead(suspects: ReadonlyMap<Session, Watched>, since: number): Promise<void> {
    const idle = await findIdle([...suspects.keys()], this.#postgres).catch(() => undefined);
    if (!idle) {
      this.#onSilence();
      return;
    }
    for (const [session, watched] of suspects) watched.isRunning = !idle.has(session);
    await sleep(READ_DELAY_MS);
    const dead = [...suspects].filter(
      ([session, { heardAt }]) => heardAt < since && session.awaitsAnswer && idle.has(session),
    );
    if (dead.length === 0) return;
    for (const [session, { heardAt }] of this.#sessions) {
      if (session.awaitsAnswer || heardAt > since - MAX_SILENCE_MS) continue;
      // An executor takes an error for the end of an idle session.
      session.emit('error', new Error('the connection is dead'));
      session.abandon();
    }
    for (const [session] of dead) session.abandon();
  }
}

/**
 * The sessions among these for which PostgreSQL runs no statement. All of them are at one host. A host name may lead to
 * several servers: nothing is concluded from the response of a server that started at another time.
 *
 * @throws if PostgreSQL cannot be asked
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
