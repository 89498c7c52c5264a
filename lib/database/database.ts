import type { Tracing } from '../observability/tracing.ts';
import type { Settings } from '../settings.ts';
import { clientConfig, openPool } from './connection.ts';
import { giveUpTheDead } from './dead-connections.ts';
import { engineOf } from './engines.ts';
import { followServers } from './servers.ts';
import { createStatements, LONGEST_IDLE, type Statements } from './statements.ts';

/** The database of the service, as the statements that it is sent. */
export type Database = {
  readonly statements: Statements;
  /** How many connections there are, and how many statements wait for one. */
  connections(): { readonly idle: number; readonly used: number; readonly waitedFor: number };
  /** Whether more statements would only queue for connections. */
  isCrowded(): boolean;
  /** Gives up all statements, for good. */
  cancel(): void;
  /** Closes all connections, and waits for no statement longer than `seconds`. */
  close(seconds: number): Promise<void>;
};

/** Opens nothing yet: the first statement connects. */
export function openDatabase(
  settings: Settings['postgres'],
  servers = followServers(settings),
  tracing?: Tracing,
): Database {
  const config = {
    ...clientConfig(settings, settings.poolTimeout),
    ...(engineOf(settings).hasSessionOptions && { statement_timeout: settings.statementTimeout * 1000 }),
    max: settings.poolSize,
    idleTimeoutMillis: LONGEST_IDLE,
    maxLifetimeSeconds: 1800,
  };
  const pool = openPool(config, servers.Client);
  giveUpTheDead(pool, settings);
  const statements = createStatements(
    pool,
    settings,
    tracing?.databaseSpans(settings.database, servers.inUse),
  );
  return { statements, connections, isCrowded: statements.isCrowded, cancel: statements.cancel, close };

  function connections() {
    const { idleCount, totalCount, waitingCount } = pool;
    return { idle: idleCount, used: totalCount - idleCount, waitedFor: waitingCount };
  }

  /** The pool itself would also wait for connections that are being opened, as long as their own limit says. */
  function close(seconds: number): Promise<void> {
    return new Promise((resolve) => {
      const giveUp = setTimeout(() => {
        statements.cancel();
        resolve();
      }, seconds * 1000);
      pool.end(() => {
        clearTimeout(giveUp);
        resolve();
      });
    });
  }
}
