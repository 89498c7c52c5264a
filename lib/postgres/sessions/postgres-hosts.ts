import { DatabaseEvents } from '../../observability/database-events.ts';
import type { EventLog } from '../../observability/event-log.ts';
import { isMissing, ROLE_SETTINGS } from '../../settings/role-settings.ts';
import type { PostgresServer, Settings } from '../../settings/settings.ts';
import { endsSession, isUnreachable, wasCutOff } from './faults.ts';
import { DeadSessionWatch } from './late-or-dead-sessions.ts';
import { connectTimeLimitMs, PostgresClient } from './postgres-client.ts';
import { Session } from './session.ts';
import type { SessionParameters } from './session-config.ts';
import { SessionOpening } from './session-opening.ts';

/** A host, and why it could not be asked. For the one to use, `fault` is why the one in use before could not be asked. */
type HostReport = {
  readonly host: PostgresServer;
  readonly acceptsWrites: boolean;
  readonly fault?: unknown;
};

/** From one look for a host that accepts writes to the next. */
const SEARCH_INTERVAL_MS = 250;

/** Minimum time between two looks at the settings of the role. */
const ROLE_CHECK_MS = 3_600_000;

/** Looks open at most one session per host in this time, and ask by it again. */
const ASKING_SESSION_LIFETIME_MS = 1000;

/** Nothing was sent over the session, because its host is not in use any more. The next session is at another host. */
export class HostChanged extends Error {
  override readonly message = 'another host accepts writes';
}

/** The hosts of SVC_POSTGRES_HOST. The service keeps to the one that accepts writes: see ../README.md. */
export class PostgresHosts {
  /** The host in use, as far as it is known. */
  inUse: PostgresServer;
  readonly events: DatabaseEvents;
  /** Is called when a session could not be opened, because statements may then use all others. */
  onOpenFailure = () => {};
  readonly #postgres: Settings['postgres'];
  readonly #isOnly: boolean;
  readonly #openings: ReadonlyMap<PostgresServer, SessionOpening>;
  readonly #watch: DeadSessionWatch;
  readonly #sessions = new Set<Session>();
  readonly #asking = new Map<PostgresServer, PostgresClient>();
  /** Undefined when the hosts must be asked: at first, and after a session was lost. */
  #found: HostReport | undefined;
  #search: Promise<HostReport> | undefined;
  #timer: NodeJS.Timeout | undefined;
  /** Whether a write was refused since a host that accepts writes was last found. */
  #wasReadOnly = false;
  #roleCheckedAt = Number.NEGATIVE_INFINITY;

  constructor(postgres: Settings['postgres'], log?: EventLog) {
    this.events = new DatabaseEvents(log);
    [this.inUse] = postgres.servers;
    this.#postgres = postgres;
    this.#isOnly = postgres.servers.length === 1;
    this.#openings = new Map(
      postgres.servers.map((host) => [host, new SessionOpening(() => this.onOpenFailure())]),
    );
    // A host could not be asked about its sessions. Another host is used if none of these sessions responds.
    this.#watch = new DeadSessionWatch(() => {
      if (!this.#isOnly && this.#found?.acceptsWrites !== false) this.#searchOnce().catch(() => {});
    });
    if (this.#isOnly) this.#found = { host: this.inUse, acceptsWrites: true };
  }

  /** Whether no further session can be opened at the host in use, as far as it is known. */
  get isFull(): boolean {
    return this.#openingAt(this.inUse).hasFailed;
  }

  /** The host to use now. @throws why none can be used */
  async find(): Promise<HostReport> {
    return this.#found ?? (await this.#searchOnce());
  }

  /** A write was refused as read-only: looks for a host, or another server of this name, that accepts writes. */
  onReadOnly(): void {
    this.#wasReadOnly = true;
    this.#searchSoon();
  }

  /** @throws {HostChanged} if another host came into use meanwhile; otherwise the reason why it cannot be opened */
  async openSession(parameters: SessionParameters): Promise<Session> {
    try {
      const session = await this.#open(await this.find(), parameters);
      this.events.onSession();
      return session;
    } catch (fault) {
      if (fault instanceof HostChanged) throw fault;
      if (this.#sessions.size > 0) this.events.onSessionRefused(this.inUse, fault);
      else this.events.onUnavailable(this.#postgres.servers, fault);
      throw fault;
    }
  }

  async #open(found: HostReport, parameters: SessionParameters): Promise<Session> {
    // PostgreSQL may allow one session only.
    if (this.#sessions.size === 0) await this.#asking.get(found.host)?.endInTime();
    const session = new Session(this.#postgres, found.host, parameters);
    await this.#openingAt(found.host).open(session);
    session.once('end', () => this.#onEnd(session));
    // The next session shows whether the host is still there.
    session.on('error', () => this.#forget(session.server));
    session.connection.on('parameterStatus', () => this.#onReport(session));
    this.#sessions.add(session);
    this.#watch.add(session);
    if (!found.acceptsWrites) this.#searchSoon();
    if (this.#isOnly) this.#onReport(session);
    await this.#checkRole(session).catch((fault) => {
      session.abandon();
      throw fault;
    });
    const isOfStandby = !this.#isOnly && found.acceptsWrites && session.acceptsWrites === false;
    if (!isOfStandby && this.inUse === found.host) return session;
    // This session is newer than the one that was asked, so the next search asks over a new one.
    this.#asking.delete(found.host);
    this.#forget(found.host);
    session.abandon();
    throw new HostChanged();
  }

  /** Where the service cannot set what its sessions need, the role should have it. An engine may not know a setting. */
  async #checkRole(session: Session): Promise<void> {
    const now = performance.now();
    if (session.engine.hasOwnSessions || now - this.#roleCheckedAt < ROLE_CHECK_MS) return;
    this.#roleCheckedAt = now;
    const missing: string[] = [];
    for (const name of Object.keys(ROLE_SETTINGS)) {
      const value = await session.show(name).catch((fault) => endsSession(fault) && Promise.reject(fault));
      if (value && isMissing(name, value)) missing.push(name);
    }
    this.events.onRoleChecked(missing);
  }

  #openingAt(host: PostgresServer): SessionOpening {
    return this.#openings.get(host) as SessionOpening;
  }

  #searchOnce(): Promise<HostReport> {
    this.#search ??= this.#askAll()
      .then((found) => this.#use(found))
      .finally(() => {
        this.#search = undefined;
      });
    return this.#search;
  }

  async #askAll(): Promise<HostReport> {
    const responding = this.#respondingSessions();
    const ordered = [this.inUse, ...this.#postgres.servers.filter((host) => host !== this.inUse)];
    const [first, ...others] = ordered.map((host) => this.#ask(host)) as [Promise<HostReport>];
    const preferred = await first;
    if (preferred.acceptsWrites) return preferred;
    const { fault } = preferred;
    const writer = await Promise.any(others.map(demandWriter)).catch(() => undefined);
    if (writer) return { ...writer, fault };
    const reports = [preferred, ...(await Promise.all(others))];
    const isAtStandby = this.#found ? !this.#found.acceptsWrites : fault === undefined;
    if (isAtStandby && reports.some((report) => report.host !== this.inUse && isAlive(report))) {
      // A host that opens no session may accept writes.
      this.#found = undefined;
      for (const session of this.#sessions) session.leave();
    }
    const standby = standbyAmong(reports, await responding);
    // Other hosts are not used any more. Statements that wait there fail now instead of at their time limit.
    for (const session of this.#sessions) if (session.server !== standby.host) session.abandon();
    return { ...standby, fault };
  }

  /** Asks again until the time limit if the connection was cut off, because that shows nothing about the host. */
  async #ask(host: PostgresServer): Promise<HostReport> {
    const deadline = performance.now() + connectTimeLimitMs(this.#postgres);
    for (;;) {
      try {
        const session = this.#asking.get(host) ?? (await this.#openToAsk(host));
        return { host, acceptsWrites: await session.askWhetherItAcceptsWrites() };
      } catch (fault) {
        this.#asking.delete(host);
        if (!wasCutOff(fault) || performance.now() >= deadline) return { host, acceptsWrites: false, fault };
      }
    }
  }

  async #openToAsk(host: PostgresServer): Promise<PostgresClient> {
    const session = new PostgresClient(this.#postgres, host);
    const forget = () => this.#asking.get(host) === session && this.#asking.delete(host);
    session.once('end', forget);
    await this.#openingAt(host).open(session);
    this.#asking.set(host, session);
    setTimeout(() => {
      forget();
      if (!session.awaitsResponse) void session.endInTime();
      else setTimeout(() => session.abandon(), connectTimeLimitMs(this.#postgres)).unref();
    }, ASKING_SESSION_LIFETIME_MS).unref();
    return session;
  }

  /** While a session that may accept writes responds, its host is available, even if it opens no session. */
  async #respondingSessions(): Promise<readonly Session[]> {
    const candidates = [...this.#sessions].filter((session) => session.acceptsWrites !== false);
    const limit = connectTimeLimitMs(this.#postgres);
    const checks = candidates.map(async (session) => ((await session.responds(limit)) ? [session] : []));
    return (await Promise.all(checks)).flat();
  }

  #use(next: HostReport): HostReport {
    if (!this.#isOnly) this.#found = next;
    this.inUse = next.host;
    this.events.onHostUsed(next.host, next.acceptsWrites, next.fault);
    for (const session of this.#sessions) if (this.#mustLeave(session, next)) session.leave();
    if (next.acceptsWrites) this.#wasReadOnly = false;
    else if (!this.#isOnly) this.#searchSoon();
    return next;
  }

  #mustLeave(session: Session, { host, acceptsWrites }: HostReport): boolean {
    // After a refused write any session may be at a server that was replaced under the same name.
    const mayBeReadOnly = session.acceptsWrites === false || this.#wasReadOnly;
    return session.server !== host || (acceptsWrites && mayBeReadOnly);
  }

  /** Looks for a host that accepts writes, again and again while none is known. With one host, once for a refused write. */
  #searchSoon(): void {
    this.#timer ??= setTimeout(async () => {
      this.#timer = undefined;
      if (this.#sessions.size === 0) return this.#forget(this.inUse);
      await this.#searchOnce().catch(() => {});
      if (!this.#found?.acceptsWrites) this.#searchSoon();
    }, SEARCH_INTERVAL_MS).unref();
  }

  #onEnd(session: Session): void {
    this.#sessions.delete(session);
    if (session.endReason !== undefined) this.events.onSessionClosed(session.server, session.endReason);
    if (this.#sessions.size === 0) this.#forget(session.server);
  }

  #forget(host: PostgresServer): void {
    if (!this.#isOnly && this.#found?.host === host) this.#found = undefined;
  }

  /** What a session reports is newer than what was found. */
  #onReport({ server, acceptsWrites }: Session): void {
    if (acceptsWrites === undefined) return;
    if (this.#isOnly) this.events.onHostUsed(server, acceptsWrites);
    else if (acceptsWrites !== this.#found?.acceptsWrites) this.#searchOnce().catch(() => {});
  }
}

/** Whether the host opened no session, and may still accept the writes of others. */
function isAlive({ fault }: HostReport): boolean {
  return fault !== undefined && !isUnreachable(fault);
}

async function demandWriter(asked: Promise<HostReport>): Promise<HostReport> {
  const report = await asked;
  if (report.acceptsWrites) return report;
  throw new Error('the host accepts no writes');
}

/**
 * The host to read from if none can accept writes. A host that is alive may accept them, and so may one of which a session
 * still responds. A session that does not report whether it accepts writes counts as its host does.
 */
function standbyAmong(reports: readonly HostReport[], responding: readonly Session[]): HostReport {
  const alive = reports.find(isAlive);
  if (alive) throw alive.fault;
  const standbys = reports.filter(({ fault }) => fault === undefined);
  const isAtStandby = ({ server }: Session) => standbys.some(({ host }) => host === server);
  if (responding.some((session) => session.acceptsWrites || !isAtStandby(session)))
    throw new Error('the host that accepts writes opens no session');
  const [standby] = standbys;
  if (standby) return standby;
  const faults = reports.map(({ fault }) => fault as Error);
  throw new AggregateError(faults, faults.map(({ message }) => message).join('; '));
}
