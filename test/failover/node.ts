import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { open, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Account } from '../../host/development/postgres/place.ts';
import type { Programs } from './programs.ts';

/** Whether a commit waits for a standby. */
export type Replication = 'synchronous' | 'asynchronous';

export type ClusterNode = ReturnType<typeof createNode>;

type Options = {
  readonly name: string;
  readonly folder: string;
  readonly account: Account;
  readonly programs: Programs;
  readonly replication: Replication;
  readonly etcdPort: number;
  /** Of PostgreSQL, and of Patroni. */
  readonly port: number;
  readonly restPort: number;
};

export function createNode(options: Options) {
  const { name, folder, account, programs, port, restPort } = options;
  const files = join(folder, `${name}-data`);
  let patroni: ChildProcess | undefined;
  let stopped: readonly number[] = [];

  /** Those of Patroni and of PostgreSQL, parents first, so that they can start no other. */
  function processes(): readonly number[] {
    const postmaster = Number.parseInt(contentOf(join(files, 'postmaster.pid')), 10);
    const own = patroni?.pid === undefined ? [] : [patroni.pid, ...childrenOf(patroni.pid)];
    const all = Number.isNaN(postmaster) ? own : [...own, postmaster, ...childrenOf(postmaster)];
    return [...new Set(all)];
  }

  function signal(processIds: readonly number[], given: NodeJS.Signals): void {
    for (const processId of processIds) {
      try {
        process.kill(processId, given);
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error;
      }
    }
  }

  const thaw = () => {
    signal(stopped, 'SIGCONT');
    stopped = [];
  };

  async function killThese(processIds: readonly number[]): Promise<void> {
    thaw();
    const isRunning = patroni && patroni.exitCode === null && patroni.signalCode === null;
    const ended = isRunning ? once(patroni as ChildProcess, 'exit') : undefined;
    signal(processIds, 'SIGKILL');
    await ended;
  }

  return {
    name,
    host: '127.0.0.1',
    port,
    restPort,
    kill: () => killThese(processes()),
    thaw,
    async start(): Promise<void> {
      const file = join(folder, `${name}.yml`);
      // JSON is YAML.
      await writeFile(file, JSON.stringify(configurationOf(options, files)));
      const log = await open(join(folder, `${name}.log`), 'a');
      patroni = spawn(programs.python, ['-m', 'patroni', file], {
        ...account,
        cwd: '/',
        env: { PYTHONPATH: programs.pythonPath, PATH: '/usr/bin:/bin', LC_ALL: 'C.UTF-8' },
        stdio: ['ignore', log.fd, log.fd],
      });
      await log.close();
    },
    /** Everything stands still, and all connections stay. */
    freeze(): void {
      stopped = processes();
      signal(stopped, 'SIGSTOP');
    },
    /** Asks this Patroni to do something with its cluster. */
    async ask(command: 'switchover' | 'restart', order: object): Promise<void> {
      const response = await fetch(`http://127.0.0.1:${restPort}/${command}`, {
        method: 'POST',
        body: JSON.stringify(order),
      });
      if (!response.ok) throw new Error(`${command}: ${response.status} ${await response.text()}`);
    },
    log: async () => (await readFile(join(folder, `${name}.log`), 'utf8')).slice(-1500),
  };
}

function configurationOf({ name, programs, port, restPort, etcdPort, replication }: Options, files: string) {
  const own = (ownPort: number) => `127.0.0.1:${ownPort}`;
  return {
    scope: 'users',
    name,
    restapi: { listen: own(restPort), connect_address: own(restPort) },
    // By version 2 of its protocol: by version 3 Patroni 3.0.2 writes the leader's key without comparing, so that a primary
    // that was frozen takes the lock back from its successor.
    etcd: { host: own(etcdPort) },
    bootstrap: {
      dcs: {
        ttl: 20,
        loop_wait: 2,
        retry_timeout: 5,
        synchronous_mode: replication === 'synchronous',
        postgresql: { use_pg_rewind: true, use_slots: true, parameters: { max_connections: 100 } },
      },
      initdb: [{ auth: 'trust' }, { encoding: 'UTF8' }, { locale: 'C.UTF-8' }, 'no-sync'],
    },
    postgresql: {
      listen: own(port),
      connect_address: own(port),
      data_dir: files,
      pgpass: `${files}.pgpass`,
      bin_dir: programs.postgres,
      authentication: { superuser: { username: 'postgres' }, replication: { username: 'replicator' } },
      pg_hba: ['host all all 127.0.0.1/32 trust', 'host replication all 127.0.0.1/32 trust'],
      parameters: { unix_socket_directories: '' },
    },
    watchdog: { mode: 'off' },
  };
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

/** The processes that one has started: the second field behind the name in their status is their parent. */
function childrenOf(parent: number): readonly number[] {
  const processIds = readdirSync('/proc').filter((name) => /^\d+$/.test(name));
  const parentOf = (id: string) =>
    contentOf(`/proc/${id}/stat`)
      .replace(/^.*\) /s, '')
      .split(' ')[1];
  return processIds.filter((id) => parentOf(id) === String(parent)).map(Number);
}
