import type { Tracing } from '../observability/tracing.ts';
import type { Settings } from '../settings/settings.ts';
import { closeDeadConnections } from './hosts/dead-connections.ts';
import { Hosts } from './hosts/hosts.ts';
import { createStatements, type Kind, type Statements } from './statements.ts';
import { maxWaiting, openWays } from './wire/routing.ts';
import type { Way } from './wire/way.ts';

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
  const watch = closeDeadConnections(settings, () => hosts.onSilence());
  const { ways, executors } = openWays(settings, hosts, watch);
  const statements = createStatements(
    ways,
    settings,
    hosts,
    tracing?.databaseSpans(settings.database, () => hosts.inUse),
  );
  const isCrowded = ({ waitingCount }: Executor) => waitingCount >= maxWaiting(settings) / 2;
  return { statements, executors: ways, isCrowded, connections, cancel: statements.cancel, close };

  function connections() {
    let [idle, used] = [0, 0];
    for (const { sessions } of executors) {
      idle += sessions.idle;
      used += sessions.used;
    }
    return { idle, used, waitedFor: statements.waitingCount };
  }

  async function close(seconds: number): Promise<void> {
    const giveUp = setTimeout(statements.cancel, seconds * 1000);
    await Promise.all(executors.map((executor) => executor.close()));
    clearTimeout(giveUp);
  }
}
