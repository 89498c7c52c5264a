import type { Load } from './load.ts';
import type { Stage } from './stage/stage.ts';
import type { Server } from './targets/start.ts';
import type { Workload } from './workloads.ts';

/** How hard and how long. */
export type Effort = { readonly connections: number; readonly warmUp: number; readonly seconds: number };

/** What one run of a workload against a target gave. */
export type Figures = {
  readonly requestsPerSecond: number;
  /** CPU seconds per 1,000 requests: those of the server's process (null without one), and those of all of PostgreSQL's. */
  readonly server: number | null;
  readonly postgres: number;
  /** In milliseconds; null where only a mean is known. */
  readonly p50: number | null;
  readonly p99: number | null;
  /** The most memory that the server held, in megabytes. */
  readonly memory: number | null;
  /** Cores that the load and everything else on the machine kept busy. */
  readonly load: number;
  readonly others: number;
  readonly faults: Readonly<Record<string, number>>;
};

/** A server of a target, with the database it is on and what has been asked of it. */
export type Stand = {
  readonly server: Server;
  readonly database: string;
  /** By workload: what `prepare` gave, and how many requests were sent. */
  readonly prepared: Readonly<Record<string, string>>;
  readonly sent: Record<string, number>;
};

/** Loads a server with a workload, at this rate where one is given, and tidies up behind it. */
export async function measure(
  stage: Stage,
  load: Load,
  stand: Stand,
  workload: Workload,
  effort: Effort,
  rate?: number,
): Promise<Figures> {
  const { server, database, prepared, sent } = stand;
  const outcome = await load.run({
    ...effort,
    ...(workload.connections && { connections: workload.connections }),
    ...(rate !== undefined && { rate }),
    workload: workload.name,
    port: server.port,
    users: stage.users,
    token: stage.credentials.token,
    tokensFile: stage.tokensFile,
    begin: sent[workload.name] ?? 0,
    prepared: prepared[workload.name] ?? '',
    watched: {
      server: server.processId,
      postgres: stage.postgresProcess,
      load: [load.processId, process.pid],
    },
  });
  sent[workload.name] = (sent[workload.name] ?? 0) + outcome.sent;
  if (workload.writes) await stage.vacuum(database);
  const { used, answered, p50, p99, memory, faults } = outcome;
  const perThousand = (cpu: number) => (cpu * 1000) / answered;
  return {
    requestsPerSecond: answered / used.seconds,
    server: perThousand(used.server),
    postgres: perThousand(used.postgres),
    p50,
    p99,
    memory,
    load: used.load / used.seconds,
    others: used.others,
    faults,
  };
}
