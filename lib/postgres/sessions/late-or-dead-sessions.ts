import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { PostgresClient } from './postgres-client.ts';
import { Session } from './session.ts';

const CHECK_INTERVAL_MS = 100;
const MAX_SILENCE_MS = 250;

/** Packets of a write that were lost twice arrive within 1.5 s. It is not sent again, because it may be carried out. */
const MAX_WRITE_SILENCE_MS = 1750;

/** How often PostgreSQL is asked at most, and whether it still runs a statement. */
const MIN_ASK_INTERVAL_MS = 500;
const RUNNING_ASK_INTERVAL_MS = 2000;

/** After a pause of the machine, PostgreSQL begins within this time with a statement that has arrived. */
const BEGIN_DELAY_MS = 100;

/** A response that has arrived is read within this time. */
const READ_DELAY_MS = 20;

/** Time limit of opening the session that asks, and of its two questions. */
const TIME_LIMIT_MS = 600;

const DEAD = 'the connection is dead: PostgreSQL has no statement of it in progress';

/** Tells late statements from sessions that a network has forgotten, and closes these: see ../README.md. */
export class DeadSessionWatch {
  readonly #onSilence: () => void;
  readonly #watched = new Set<PostgresClient>();
  #timer: NodeJS.Timeout | undefined;
  #askedAt = Number.NEGATIVE_INFINITY;
  /** The check belongs to no request. */
  readonly #check = AsyncResource.bind(() => this.#closeSilent());

  /** `onSilence` is called if PostgreSQL cannot be asked. */
  constructor(onSilence = () => {}) {
    this.#onSilence = onSilence;
  }

  add(session: PostgresClient): void {
    if (session.serverStarted === undefined) return;
    this.#watched.add(session);
    session.once('end', () => this.#watched.delete(session));
    this.#timer ??= setInterval(this.#check, CHECK_INTERVAL_MS).unref();
  }

  #closeSilent(): void {
    const now = performance.now();
    if (this.#watched.size === 0) this.#timer = void clearInterval(this.#timer);
    for (const session of this.#watched) if (!session.awaitsResponse) session.idleAt = now;
    const suspects = [...this.#watched].filter((session) => isSuspect(session, now));
    if (suspects.length === 0 || now - this.#askedAt < MIN_ASK_INTERVAL_MS) return;
    // One question at a time: the next one counts from the end of this one.
    this.#askedAt = Number.POSITIVE_INFINITY;
    const atServers = [...Map.groupBy(suspects, ({ server }) => server).values()];
    void Promise.all(atServers.map((atServer) => this.#closeDead(atServer, now))).then(() => {
      this.#askedAt = performance.now();
    });
  }

  /** Closes those of these suspects that are dead. They are at one host. */
  async #closeDead(suspects: readonly PostgresClient[], since: number): Promise<void> {
    const idle = await findIdle(suspects).catch(() => undefined);
    if (!idle) return this.#onSilence();
    await sleep(READ_DELAY_MS);
    const silent = idle.filter(({ awaitsResponse, heardAt }) => awaitsResponse && heardAt < since);
    const dead = silent.filter((session) => !mayBeLate(session) || !session.isWriting);
    for (const session of silent) if (!dead.includes(session)) (session as Session).leave('late');
    if (dead.length === 0) return;
    const isSilent = (session: PostgresClient) =>
      !session.awaitsResponse && session.heardAt <= since - MAX_SILENCE_MS;
    for (const session of [...this.#watched].filter(isSilent).concat(dead)) session.abandon(DEAD);
  }
}

/**
 * Those that PostgreSQL shows as idle twice. A name may lead to several servers: one that started at another time says
 * nothing. @throws if PostgreSQL cannot be asked
 */
function findIdle(suspects: readonly PostgresClient[]): Promise<readonly PostgresClient[]> {
  const [first] = suspects as readonly [PostgresClient];
  return first.askAside(TIME_LIMIT_MS, async (asking) => {
    const ofServer = suspects.filter(({ serverStarted }) => serverStarted === asking.serverStarted);
    const idle = await idleOf(ofServer, asking);
    if (idle.length > 0) await sleep(BEGIN_DELAY_MS);
    return await idleOf(idle, asking);
  });
}

/** With `SET role` PostgreSQL hides the state of a session, but shows its locks. */
async function idleOf(
  suspects: readonly PostgresClient[],
  asking: PostgresClient,
): Promise<readonly PostgresClient[]> {
  if (suspects.length === 0) return [];
  const { rows } = await asking.query(
    `select pid, coalesce(state, (select 'active' from pg_locks where pg_locks.pid = one.pid limit 1)) as state
    from pg_stat_activity as one where pid = any($1) and state is distinct from 'idle'`,
    [suspects.map(({ processID }) => processID)],
  );
  const busy = new Map(rows.map(({ pid, state }) => [Number(pid), state]));
  for (const session of suspects) if (busy.get(session.processID)) session.seenRunningAt = performance.now();
  return suspects.filter(({ processID }) => !busy.has(processID));
}

/** Whether a response has been due for too long, and PostgreSQL has not shown lately that it runs the statement. */
function isSuspect(session: PostgresClient, now: number): boolean {
  const { awaitsResponse, heardAt, idleAt, seenRunningAt } = session;
  const limit = mayBeLate(session) ? MAX_SILENCE_MS : MAX_WRITE_SILENCE_MS;
  const isSilent = awaitsResponse && now - Math.max(heardAt, idleAt) >= limit;
  return isSilent && now - seenRunningAt >= RUNNING_ASK_INTERVAL_MS;
}

/** Whether another session can take its place while it waits for a write. */
function mayBeLate(session: PostgresClient): session is Session {
  return session instanceof Session && session.state !== 'late';
}
