import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../host/development/free-port.ts';
import { isListening } from './listening.ts';
import type { PostgresServer } from './rows.ts';
import { until } from './until.ts';

const PGBOUNCER = '/usr/sbin/pgbouncer';

type Options = {
  /** Number of connections to PostgreSQL per database. */
  readonly poolSize: number;
  /** Names and passwords of its users. By default any user is accepted. */
  readonly callers?: Readonly<Record<string, string>>;
};

/** Starts PgBouncer in transaction mode. */
export async function startPgBouncer(server: PostgresServer, { poolSize, callers }: Options) {
  if (!existsSync(PGBOUNCER)) throw new Error(`${PGBOUNCER} is missing: apt-get install pgbouncer`);
  const folder = await mkdtemp(join(tmpdir(), 'user-management-pgbouncer-'));
  const [file, log, users] = [join(folder, 'pgbouncer.ini'), join(folder, 'log'), join(folder, 'users')];
  const port = await freePort();
  await writeFile(file, configuration(server, port, poolSize));
  await writeFile(log, '');
  await writeFile(
    users,
    Object.entries(callers ?? {})
      .map((pair) => `${pair.map((text) => `"${text}"`).join(' ')}\n`)
      .join(''),
  );
  // PgBouncer refuses to run as root, and needs access to these files as another user.
  await chmod(folder, 0o777);
  await chmod(log, 0o666);
  const identity = process.getuid?.() === 0 ? ['--user', 'nobody'] : [];
  const child = spawn(PGBOUNCER, ['--quiet', ...identity, file], { stdio: 'ignore' });
  await until('PgBouncer listens', () => {
    if (child.exitCode !== null) throw new Error(`PgBouncer has ended: see ${log}`);
    return isListening(port);
  });

  return {
    host: '127.0.0.1',
    port,
    log: () => readFile(log, 'utf8'),
    async stop(): Promise<void> {
      child.kill('SIGKILL');
      await once(child, 'exit');
      await rm(folder, { recursive: true });
    },
  };

  function configuration(
    { host, port, user, password }: PostgresServer,
    ownPort: number,
    size: number,
  ): string {
    const settings = {
      listen_addr: '127.0.0.1',
      listen_port: ownPort,
      unix_socket_dir: '',
      // All users connect to PostgreSQL as that user.
      auth_type: callers ? 'scram-sha-256' : 'any',
      ...(callers && { auth_file: users }),
      pool_mode: 'transaction',
      default_pool_size: size,
      max_client_conn: 1000,
      logfile: log,
    };
    const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
    const target = `* = host=${host} port=${port} user=${user}${password && ` password='${password}'`}`;
    return ['[databases]', target, '[pgbouncer]', ...lines, ''].join('\n');
  }
}
