import type { Tracing } from '../observability/tracing.ts';
import type { Settings } from '../settings/settings.ts';
import { closeDeadConnections } from './hosts/dead-connections.ts';
import { Hosts } from './hosts/hosts.ts';
import type { StatementKind } from './sender.ts';
import { Statements } from './statements.ts';
import { maxWaiting, openExecutors } from './wire/routing.ts';
import type { Way } from './wire/way.ts';

/** The executor of some kinds of statements. */
type Executor = Pick<Way, 'waitingCount'>;

/** The database of the service. */
export type Database = {
  readonly statements: Statements;
  /** Number of connections, and of statements that wait for one. */
  connections(): { readonly idle: number; readonly used: number; readonly waitedFor: number };
  /** The executor of each kind of statement. */
  readonly executors: Readonly<Record<StatementKind, Executor>>;
  /** Whether half of the statements that may wait for an executor wait for it. */
  isCrowded(executor: Executor): boolean;
  /** The hosts of SVC_POSTGRES_HOST. */
  readonly hosts: Hosts;
  /** Cancels all statements, for good. */
  cancel(): void;
  /** Closes all connections, and waits for no statement longer than `seconds`. */
  close(seconds: number): Promise<void>;
};

/** Opens nothing yet: the first statement connects. `latestMigration` is the one that this version requires. */
export function openDatabase(
  settings: Settings['postgres'],
  {
    tracing,
    latestMigration,
  }: { readonly tracing?: Tracing | undefined; readonly latestMigration?: string } = {},
): Database {
  const hosts = new Hosts(settings);
  const watch = closeDeadConnections(settings, () => hosts.onSilence());
  const { executors, pools } = openExecutors(settings, hosts, watch);
  const withinSpan = tracing?.databaseSpans(settings.database, () => hosts.inUse);
  const statements = new Statements(settings, executors, hosts, withinSpan, latestMigration);
  const isCrowded = ({ waitingCount }: Executor) => waitingCount >= maxWaiting(settings) / 2;
  return { statements, executors, isCrowded, hosts, connections, cancel: () => statements.cancel(), close };

  function connections() {
    let [idle, used] = [0, 0];
    for (const { sessions } of pools) {
      idle += sessions.idle;
      used += sessions.used;
    }
    return { idle, used, waitedFor: statements.waitingCount };
  }

  async function close(seconds: number): Promise<void> {
    const timer = setTimeout(() => statements.cancel(), seconds * 1000);
    await Promise.all(pools.map((pool) => pool.close()));
    clearTimeout(timer);
  }
}
