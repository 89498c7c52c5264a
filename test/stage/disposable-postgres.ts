import { mkdtemp } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Postgres, startPostgres } from '../../host/development/postgres.ts';
import { hastySettings, removeDataFolder } from './postgres.ts';
import { inDatabase } from './rows.ts';
import { until } from './until.ts';

export type DisposablePostgres = Awaited<ReturnType<typeof startDisposablePostgres>>;

type Options = {
  readonly settings?: Readonly<Record<string, string | number>>;
  readonly dataFolder?: string;
};

/** A process that was killed, or had just begun, may hold the shared memory for a moment. */
function unlessHeld(fault: unknown): undefined {
  if (!String(fault).includes('pre-existing shared memory block')) throw fault;
}

/**
 * Starts a PostgreSQL for one test, which can be frozen, killed and started again on the same port. An acknowledged
 * commit survives the end of its processes, but not that of the machine. Its files have a folder of their own, unless
 * `dataFolder` is given, such as a small file system.
 */
export async function startDisposablePostgres({ settings = {}, dataFolder: given }: Options = {}) {
  const dataFolder = given ?? (await mkdtemp(join(tmpdir(), 'user-management-disposable-')));
  const options = { dataFolder, settings: { ...hastySettings, synchronous_commit: 'on', ...settings } };
  let server: Postgres = await startPostgres(options);
  const { host, port, user, password, database } = server;
  let frozen: readonly number[] = [];

  /** Runs statements as administrator, in this or another database. Resolves with the rows of the last one. */
  const query = (statements: string | readonly string[], name = database) =>
    inDatabase({ host, port, user, password, database: name }, ...[statements].flat());

  /** All its processes. The main process is the first, so that it can start no other. */
  async function processes(): Promise<readonly number[]> {
    const rows = await query('SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()');
    return [server.processId, ...rows.map(({ pid }) => Number(pid))];
  }

  const signal = (processId: number, name: NodeJS.Signals) => {
    try {
      process.kill(processId, name);
    } catch {
      // A session may have ended meanwhile.
    }
  };

  const thaw = () => {
    for (const processId of frozen) signal(processId, 'SIGCONT');
    frozen = [];
  };

  return {
    host,
    port,
    user,
    password,
    database,
    name: database,
    dataFolder,
    query,
    /** Ends the sessions of the service that satisfy the condition, by default all. Resolves with their number. */
    async terminate(condition = 'true'): Promise<number> {
      const rows = await query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE application_name = 'user-management-service' AND ${condition}`,
      );
      return rows.length;
    },
    /** From now on new sessions accept no writes. The result undoes this. */
    async refuseWrites(): Promise<() => Promise<void>> {
      await query(`ALTER DATABASE ${database} SET default_transaction_read_only = on`);
      return async () => {
        await query([
          'SET default_transaction_read_only = off',
          `ALTER DATABASE ${database} RESET default_transaction_read_only`,
        ]);
      };
    },
    /** Number of sessions of the service in any state. */
    async countSessions(condition = 'true'): Promise<number> {
      const [row] = await query(
        `SELECT count(*)::int FROM pg_stat_activity
         WHERE application_name = 'user-management-service' AND ${condition}`,
      );
      return Number(row?.count);
    },
    /** Stops all processes: connections stay open, new ones are accepted, and nothing responds. */
    async freeze(): Promise<void> {
      frozen = await processes();
      for (const processId of frozen) signal(processId, 'SIGSTOP');
    },
    thaw,
    /** Kills all processes at once, like a crash. The data is in the written state. */
    async kill(): Promise<void> {
      for (const processId of await processes()) signal(processId, 'SIGKILL');
      await server.stop();
    },
    /** Stops it as an administrator does. */
    shutDown: () => server.stop(),
    /** Starts it again on the same port, with its data, when no process of it is left. */
    async start(): Promise<void> {
      server = await until('it starts', () => startPostgres({ ...options, port }).catch(unlessHeld));
    },
    /** Ends it in any state, and removes its files. */
    async stop(): Promise<void> {
      thaw();
      await server.stop();
      await removeDataFolder(dataFolder);
    },
  };
}
