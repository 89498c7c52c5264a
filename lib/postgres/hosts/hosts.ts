import type { ClientConfig } from 'pg';
import type { Settings } from '../../settings/settings.ts';
import { isUnreachable, wasCutOff } from '../faults.ts';
import { ConnectionAttempts } from './connection-attempts.ts';
import { clientConfig } from './connection-config.ts';
import { connectTimeLimit, Session } from './session.ts';

type Postgres = Settings['postgres'];

/** Where a PostgreSQL listens. */
export type Host = Postgres['servers'][number];

/** A host, and whether it accepts writes. */
type Found = { readonly host: Host; readonly acceptsWrites: boolean };

/** What a host answered, or why it did not. */
type Failed = { readonly host: Host; readonly fault: unknown };
type Answer = Found | Failed;

/** In milliseconds, from one look for a host that accepts writes to the next. */
const SEARCH_INTERVAL_MS = 250;

/** In milliseconds: looks open at most one session per host in this time, and ask by it again. */
const ASKING_SESSION_LIFETIME_MS = 1000;

/**
 * The hosts of SVC_POSTGRES_HOST. The service keeps to the one that accepts writes, as libpq does with
 * `target_session_attrs=read-write`. All hosts are asked at the same time, and the one last used is preferred, however
 * long it takes within the time limit: a standby that answers first would give old data, and no write. A standby is
 * used, for reads, only while no host accepts writes.
 */
export class Hosts {
  readonly #postgres: Postgres;
  readonly #all: readonly Host[];
  readonly #attempts: ReadonlyMap<Host, ConnectionAttempts>;
  readonly #sessions = new Set<HostSession>();
  readonly #asking = new Map<Host, Session>();
  #inUse: Host;
  /** Undefined when the hosts must be asked: at first, and after a session was lost. */
  #found: Found | undefined;
  #search: Promise<Found> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whether a write was refused since a host that accepts writes was last found. */
  #wasReadOnly = false;

  /** Connects to nothing yet. */
  constructor(postgres: Postgres) {
    [this.#inUse] = postgres.servers;
    this.#postgres = postgres;
    this.#all = postgres.servers;
    this.#attempts = new Map(this.#all.map((host) => [host, new ConnectionAttempts()]));
    if (this.#isOnly) this.#found = { host: this.#inUse, acceptsWrites: true };
  }

  /** The host in use, as far as it is known. */
  get inUse(): Host {
    return this.#inUse;
  }

  /** Whether the host in use refuses more sessions, so that statements must share those that there are. */
  get refusesSessions(): boolean {
    return this.#attemptsAt(this.#inUse).isFailing;
  }

  /** The host to use now. @throws why none can be used */
  async find(): Promise<Host> {
    return (await this.#findHost()).host;
  }

  /** A write was refused as read-only: looks for a host, or another server of this name, that accepts writes. */
  onReadOnly(): void {
    this.#wasReadOnly = true;
    this.#searchSoon();
  }

  /** A host does not answer a question about its sessions. Another one is used if none of its sessions responds. */
  onSilence(): void {
    if (!this.#isOnly && this.#found?.acceptsWrites !== false) this.#searchOnce().catch(() => {});
  }

  /**
   * Opens a session at the host in use.
   *
   * @throws {HostChanged} if another host came into use meanwhile; otherwise the reason why it cannot be opened
   */
  async openSession(config: ClientConfig): Promise<Session> {
    const found = await this.#findHost();
    const session = new HostSession(config, this.#postgres, found.host);
    await this.#attemptsAt(found.host).open(session);
    session.once('end', () => this.#onEnd(session));
    session.on('error', () => this.#onError(session));
    session.onWritesChange(() => this.#onReport(session));
    this.#sessions.add(session);
    if (!found.acceptsWrites) this.#searchSoon();
    const isOfStandby = !this.#isOnly && found.acceptsWrites && session.acceptsWrites === false;
    if (!isOfStandby && this.#inUse === found.host) return session;
    // Another session is asked next, because this one knows better.
    this.#asking.delete(found.host);
    this.#onError(session);
    session.abandon();
    throw new HostChanged();
  }

  get #isOnly(): boolean {
    return this.#all.length === 1;
  }

  #attemptsAt(host: Host): ConnectionAttempts {
    return this.#attempts.get(host) as ConnectionAttempts;
  }

  async #findHost(): Promise<Found> {
    return this.#found ?? (await this.#searchOnce());
  }

  #searchOnce(): Promise<Found> {
    this.#search ??= this.#askAll()
      .then((found) => this.#use(found))
      .finally(() => {
        this.#search = undefined;
      });
    return this.#search;
  }

  async #askAll(): Promise<Found> {
    const responding = this.#respondingSessions();
    const ordered = [this.#inUse, ...this.#all.filter((host) => host !== this.#inUse)];
    const [first, ...others] = ordered.map((host) => this.#ask(host)) as [Promise<Answer>];
    const preferred = await first;
    if (isWriter(preferred)) return preferred;
    const writer = await Promise.any(others.map(demandWriter)).catch(() => undefined);
    if (writer) return writer;
    const answers = [preferred, ...(await Promise.all(others))];
    if (answers.some((answer) => answer.host !== this.#inUse && isRefusal(answer))) this.#leaveStandby();
    const standby = standbyAmong(answers, await responding);
    // None of them has responded: a statement that waits for its answer is not held up any longer.
    for (const session of this.#sessions) if (session.at !== standby.host) session.abandon();
    return standby;
  }

  /** A fault is an answer, too; but a connection that was cut off says nothing before the time limit is reached. */
  async #ask(host: Host): Promise<Answer> {
    const limit = connectTimeLimit(this.#postgres);
    const deadline = performance.now() + limit;
    for (;;) {
      try {
        const session = this.#asking.get(host) ?? (await this.#openToAsk(host));
        const timer = setTimeout(() => session.abandon(), limit);
        const acceptsWrites = await session.askWhetherItAcceptsWrites().finally(() => clearTimeout(timer));
        return { host, acceptsWrites };
      } catch (fault) {
        this.#asking.delete(host);
        if (!wasCutOff(fault) || performance.now() >= deadline) return { host, fault };
      }
    }
  }

  async #openToAsk(host: Host): Promise<Session> {
    const session = new Session(clientConfig({ ...this.#postgres, servers: [host] }), this.#postgres);
    session.once('end', () => this.#asking.get(host) === session && this.#asking.delete(host));
    await this.#attemptsAt(host).open(session);
    this.#asking.set(host, session);
    setTimeout(() => this.#asking.delete(host), ASKING_SESSION_LIFETIME_MS).unref();
    setTimeout(
      () => session.abandon(),
      ASKING_SESSION_LIFETIME_MS + connectTimeLimit(this.#postgres),
    ).unref();
    return session;
  }

  /** While a session that may accept writes is alive, its host is there, whatever that answers to new ones. */
  async #respondingSessions(): Promise<readonly HostSession[]> {
    const candidates = [...this.#sessions].filter((session) => session.acceptsWrites !== false);
    const checks = candidates.map((session) => session.responds(connectTimeLimit(this.#postgres)));
    const responds = await Promise.all(checks);
    return candidates.filter((_, index) => responds[index]);
  }

  #use(next: Found): Found {
    if (!this.#isOnly) this.#found = next;
    this.#inUse = next.host;
    for (const session of this.#sessions) if (this.#mustLeave(session, next)) session.leave();
    if (next.acceptsWrites) this.#wasReadOnly = false;
    else if (!this.#isOnly) this.#searchSoon();
    return next;
  }

  /** Another host has opened no session, and may accept writes. */
  #leaveStandby(): void {
    if (this.#found?.acceptsWrites !== false) return;
    this.#found = undefined;
    for (const session of this.#sessions) session.leave();
  }

  #mustLeave(session: HostSession, { host, acceptsWrites }: Found): boolean {
    if (session.at !== host) return true;
    if (!acceptsWrites) return false;
    // After a refused write any session may be at a server that was replaced under the same name.
    return session.acceptsWrites === false || this.#wasReadOnly;
  }

  /** Looks for a host that accepts writes: repeatedly at a standby, otherwise after each refused write. */
  #searchSoon(): void {
    this.#timer ??= setTimeout(async () => {
      this.#timer = undefined;
      if (this.#sessions.size === 0) return this.#forget(this.#inUse);
      await this.#searchOnce().catch(() => {});
      if (this.#found?.acceptsWrites === false) this.#searchSoon();
    }, SEARCH_INTERVAL_MS).unref();
  }

  #onEnd(session: HostSession): void {
    this.#sessions.delete(session);
    if (this.#sessions.size === 0) this.#forget(session.at);
  }

  #forget(host: Host): void {
    if (!this.#isOnly && this.#found?.host === host) this.#found = undefined;
  }

  /** The next session shows whether the host is still there. */
  #onError({ at, isLeaving }: HostSession): void {
    if (isLeaving) return;
    this.#attemptsAt(at).doubt();
    this.#forget(at);
  }

  /** What a session reports is newer than what was found. */
  #onReport({ acceptsWrites }: HostSession): void {
    if (this.#isOnly || acceptsWrites === undefined || acceptsWrites === this.#found?.acceptsWrites) return;
    this.#searchOnce().catch(() => {});
  }
}

/**
 * A session was opened at a host that is not in use any more, and nothing was sent: the next one is at another host.
 */
export class HostChanged extends Error {
  override readonly message = 'another host accepts writes';
}

/** A session of an executor, at the host that was in use when it was opened. */
class HostSession extends Session {
  readonly at: Host;
  isLeaving = false;

  constructor(config: ClientConfig, postgres: Postgres, at: Host) {
    super({ ...config, ...at }, postgres);
    this.at = at;
  }

  /** The executor takes an error for the end of an idle session. One in use ends after its statements. */
  leave(): void {
    if (this.isLeaving) return;
    this.isLeaving = true;
    this.once('drain', () => void this.end());
    this.emit('error', new HostChanged());
  }
}

function isWriter(answer: Answer): answer is Found {
  return 'acceptsWrites' in answer && answer.acceptsWrites;
}

/** A host that refuses this session may accept the writes of others. */
function isRefusal(answer: Answer): answer is Failed {
  return 'fault' in answer && !isUnreachable(answer.fault);
}

async function demandWriter(asked: Promise<Answer>): Promise<Found> {
  const answer = await asked;
  if (isWriter(answer)) return answer;
  throw new Error('the host accepts no writes');
}

/**
 * The host to read from when none accepts writes. A host may accept writes if it refuses this session, or if one of its
 * sessions still responds. A session that does not report what it accepts is taken for what its host is.
 */
function standbyAmong(answers: readonly Answer[], responding: readonly HostSession[]): Found {
  const refusal = answers.find(isRefusal);
  if (refusal) throw refusal.fault;
  const standbys = answers.filter((answer) => 'acceptsWrites' in answer);
  const isAtStandby = ({ at }: HostSession) => standbys.some(({ host }) => host === at);
  if (responding.some((session) => session.acceptsWrites || !isAtStandby(session)))
    throw new Error('the host that accepts writes opens no session');
  const [standby] = standbys;
  if (standby) return standby;
  const faults = answers.flatMap((answer) => ('fault' in answer ? [answer.fault] : []));
  throw new AggregateError(faults, faults.map((fault) => (fault as Error).message).join('; '));
}
