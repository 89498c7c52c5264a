import { existsSync } from 'node:fs';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '../../host/development/free-port.ts';
import { isListening } from './listening.ts';
import { startProcess } from './process.ts';
import type { PostgresServer } from './rows.ts';

const PGBOUNCER = '/usr/sbin/pgbouncer';

/**
 * Starts PgBouncer in transaction mode, with `poolSize` connections to PostgreSQL per database. `callers` are the names
 * and passwords of its users. By default any user is accepted.
 */
export async function startPgBouncer(
  { host, port: target, user, password }: PostgresServer,
  { poolSize, callers }: { readonly poolSize: number; readonly callers?: Readonly<Record<string, string>> },
) {
  if (!existsSync(PGBOUNCER)) throw new Error(`${PGBOUNCER} is missing: apt-get install pgbouncer`);
  const folder = await mkdtemp(join(tmpdir(), 'user-management-pgbouncer-'));
  const [file, log, users] = [join(folder, 'pgbouncer.ini'), join(folder, 'log'), join(folder, 'users')];
  const port = await freePort();
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    // All users connect to PostgreSQL as that user.
    auth_type: callers ? 'scram-sha-256' : 'any',
    ...(callers && { auth_file: users }),
    pool_mode: 'transaction',
    default_pool_size: poolSize,
    max_client_conn: 1000,
    logfile: log,
  };
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`);
  const database = `* = host=${host} port=${target} user=${user}${password && ` password='${password}'`}`;
  await writeFile(file, ['[databases]', database, '[pgbouncer]', ...lines, ''].join('\n'));
  await writeFile(log, '');
  const accounts = Object.entries(callers ?? {}).map(([name, secret]) => `"${name}" "${secret}"\n`);
  await writeFile(users, accounts.join(''));
  // PgBouncer refuses to run as root, and needs access to these files as another user.
  await chmod(folder, 0o777);
  await chmod(log, 0o666);
  const identity = process.getuid?.() === 0 ? ['--user', 'nobody'] : [];
  const pooler = startProcess([PGBOUNCER, ...identity, file], { env: process.env });
  await pooler.find('PgBouncer listens', () => isListening(port));

  return {
    host: '127.0.0.1',
    port,
    log: () => readFile(log, 'utf8'),
    async stop(): Promise<void> {
      await pooler.remove();
      await rm(folder, { recursive: true });
    },
  };
}
