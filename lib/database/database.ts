import type { Pool } from 'pg';
import type { Tracing } from '../observability/tracing.ts';
import type { Settings } from '../settings.ts';
import type { Way } from './connections/way.ts';
import { maxWaiting, openWays } from './connections/ways.ts';
import { closeDeadConnections } from './servers/dead-connections.ts';
import { Hosts } from './servers/hosts.ts';
import type { Session } from './servers/session.ts';
import { createStatements, type Kind, type Statements } from './statements.ts';

/** What sends statements of some kinds. */
type Executor = Pick<Way, 'waitingCount'>;

/** The database of the service, as the statements that it is sent. */
export type Database = {
  readonly statements: Statements;
  /** How many connections there are, and how many statements wait for one. */
  connections(): { readonly idle: number; readonly used: number; readonly waitedFor: number };
  /** By the kind of a statement, the executor that sends it. */
  readonly executors: Readonly<Record<Kind, Executor>>;
  /** Whether so many statements wait for the connections of an executor that it would soon be too many. */
  isCrowded(executor: Executor): boolean;
  /** Gives up all statements, for good. */
  cancel(): void;
  /** Closes all connections, and waits for no statement longer than `seconds`. */
  close(seconds: number): Promise<void>;
};

/** Opens nothing yet: the first statement connects. */
export function openDatabase(
  settings: Settings['postgres'],
  hosts = new Hosts(settings),
  tracing?: Tracing,
): Database {
  const { ways, pools, shared } = openWays(settings, hosts);
  const watch = closeDeadConnections(settings, () => hosts.onSilence());
  for (const pool of pools) pool.on('connect', (client) => watch(client as unknown as Session));
  const statements = createStatements(
    ways,
    settings,
    hosts,
    tracing?.databaseSpans(settings.database, () => hosts.inUse),
  );
  const isCrowded = ({ waitingCount }: Executor) => waitingCount >= maxWaiting(settings) / 2;
  return { statements, executors: ways, isCrowded, connections, cancel: statements.cancel, close };

  function connections() {
    const sum = (read: (pool: Pool) => number) => pools.reduce((total, pool) => total + read(pool), 0);
    return {
      idle: sum(({ idleCount }) => idleCount),
      used: sum(({ totalCount, idleCount }) => totalCount - idleCount),
      waitedFor: statements.waitingCount,
    };
  }

  /** The pools themselves would also wait for connections that are being opened, as long as their own limit says. */
  function close(seconds: number): Promise<void> {
    return new Promise((resolve) => {
      const giveUp = setTimeout(() => {
        statements.cancel();
        resolve();
      }, seconds * 1000);
      for (const one of shared) one.close();
      void Promise.all(pools.map(ended)).then(() => {
        clearTimeout(giveUp);
        resolve();
      });
    });
  }
}

/** A pool that has been ended before says so, and is ended all the same. */
function ended(pool: Pool): Promise<void> {
  return new Promise((resolve) => pool.end(() => resolve()));
}
