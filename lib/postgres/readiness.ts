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
 * Asks on a connection of its own, which no load on the other connections delays, one question at a time. The schema has
 * the tables that this version needs when its latest migration is recorded.
 */
export function createReadiness(
  settings: Settings['postgres'],
  latestMigration: string,
  hosts = new Hosts(settings),
): Readiness {
  const isMigrated = { text: 'select from kysely_migration where name = $1', values: [latestMigration] };
  let session: Promise<Session> | undefined;
  let asking: Promise<void> | undefined;

  /** A session that needs longer than the time limit of a check is there for the next check. */
  async function ask(): Promise<void> {
    session ??= open();
    let opened: Session | undefined;
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      if (opened) opened.abandon();
      reject(new Error('PostgreSQL did not answer in time'));
    }, TIME_LIMIT_MS);
    try {
      opened = await Promise.race([session, late]);
      const { rowCount } = await Promise.race([opened.query(isMigrated), late]);
      if (rowCount === 0) throw NOT_MIGRATED;
    } catch (cause) {
      if (opened && !isUnmigrated(cause)) opened.abandon();
      throw notReady(cause);
    } finally {
      clearTimeout(timer);
    }
  }

  function open(): Promise<Session> {
    const opening = new hosts.Session(clientConfig(settings));
    const opened = opening.connect();
    const forget = () => {
      if (session === opened) session = undefined;
    };
    opened.catch(forget);
    opening.once('end', forget).on('error', () => {
      forget();
      if (!asking) void opening.end();
    });
    return opened;
  }

  return {
    check() {
      asking ??= ask().finally(() => {
        asking = undefined;
      });
      return asking;
    },
    async close() {
      void session?.then(
        (opened) => opened.abandon(),
        () => {},
      );
    },
  };
}

/** Before the first migration, the record of migrations does not exist either. */
function notReady(cause: unknown) {
  if (isUnmigrated(cause)) return unavailable('the migrations have not run yet');
  return unavailable(`not ready: ${cause instanceof Error ? cause.message : cause}`, cause);
}

function isUnmigrated(cause: unknown): boolean {
  return cause === NOT_MIGRATED || isMissingTable(cause);
}
