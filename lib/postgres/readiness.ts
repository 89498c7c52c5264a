import { unavailable } from '../http/problem.ts';
import type { Settings } from '../settings/settings.ts';
import { isMissingTable } from './faults.ts';
import { clientConfig } from './hosts/connection-config.ts';
import { Hosts } from './hosts/hosts.ts';
import type { Session } from './hosts/session.ts';

/** Whether the database is connected and has the tables that this version needs. */
export type Readiness = {
  /** @throws {Problem} service_unavailable_error, within a second */
  check(): Promise<void>;
  close(): Promise<void>;
};

const TIME_LIMIT_MS = 950;

const NOT_MIGRATED = Symbol('not migrated');

/**
 * Asks over a session of its own, which no load on the other sessions delays, one question at a time. The schema has the
 * tables that this version needs when its latest migration is recorded.
 */
class ReadinessCheck implements Readiness {
  readonly #settings: Settings['postgres'];
  readonly #latestMigration: string;
  readonly #hosts: Hosts;
  #session: Promise<Session> | undefined;
  #asking: Promise<void> | undefined;

  constructor(settings: Settings['postgres'], latestMigration: string, hosts: Hosts) {
    this.#settings = settings;
    this.#latestMigration = latestMigration;
    this.#hosts = hosts;
  }

  check(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  async close(): Promise<void> {
    void this.#session?.then(
      (opened) => opened.abandon(),
      () => {},
    );
  }

  /** A session that takes longer to open than the time limit of a check is used by the next check. */
  async #ask(): Promise<void> {
    this.#session ??= this.#open();
    let opened: Session | undefined;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      opened?.abandon();
      reject(new Error('PostgreSQL did not answer in time'));
    }, TIME_LIMIT_MS);
    try {
      opened = await Promise.race([this.#session, late]);
      const recorded = opened.query('select from kysely_migration where name = $1', [this.#latestMigration]);
      const { rowCount } = await Promise.race([recorded, late]);
      if (rowCount === 0) throw NOT_MIGRATED;
    } catch (cause) {
      if (!isUnmigrated(cause)) opened?.abandon();
      throw notReady(cause);
    } finally {
      clearTimeout(timer);
    }
  }

  #open(): Promise<Session> {
    const opening = new this.#hosts.Session(clientConfig(this.#settings));
    const opened = opening.connect();
    const forget = () => {
      if (this.#session === opened) this.#session = undefined;
    };
    opened.catch(forget);
    opening.once('end', forget).on('error', () => {
      forget();
      if (!this.#asking) void opening.end();
    });
    return opened;
  }
}

/** Creates the check of one instance. It connects when it is first used. */
export function createReadiness(
  settings: Settings['postgres'],
  latestMigration: string,
  hosts = new Hosts(settings),
): Readiness {
  return new ReadinessCheck(settings, latestMigration, hosts);
}

/** Before the first migration, the record of migrations does not exist either. */
function notReady(cause: unknown) {
  if (isUnmigrated(cause)) return unavailable('the migrations have not run yet');
  return unavailable(`not ready: ${cause instanceof Error ? cause.message : cause}`, cause);
}

function isUnmigrated(cause: unknown): boolean {
  return cause === NOT_MIGRATED || isMissingTable(cause);
}
