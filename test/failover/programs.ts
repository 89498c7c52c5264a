import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Patroni, etcd, and what Patroni imports: unpacked, not installed. */
const PACKAGES = [
  'patroni',
  'etcd-server',
  ...['etcd', 'psycopg2', 'click', 'prettytable', 'psutil', 'yaml', 'dateutil', 'urllib3', 'pysyncobj'].map(
    (name) => `python3-${name}`,
  ),
  ...['cdiff', 'six', 'wcwidth', 'dnspython'].map((name) => `python3-${name}`),
];

/** What has to be installed. */
const INSTALLED = { python3: '/usr/bin/python3', haproxy: '/usr/sbin/haproxy' } as const;

const POSTGRES = '/usr/lib/postgresql';

/** Where the programs of a cluster are. */
export type Programs = Awaited<ReturnType<typeof unpackPrograms>>;

/** Fetches Debian's packages of Patroni and etcd and unpacks them in `folder`; nothing is installed by it. */
export async function unpackPrograms(folder: string) {
  for (const [name, path] of Object.entries(INSTALLED)) if (!existsSync(path)) refuse(path, name);
  const versions = existsSync(POSTGRES) ? await readdir(POSTGRES) : [];
  const version = versions.find((name) => existsSync(join(POSTGRES, name, 'bin/pg_rewind')));
  if (!version) refuse(`${POSTGRES}/*/bin/pg_rewind`, 'postgresql');

  const packages = join(folder, 'packages');
  await mkdir(packages, { recursive: true });
  await run('apt-get', ['download', '-qq', ...PACKAGES], { cwd: packages }).catch(({ stderr }) => {
    throw new Error(`the packages cannot be fetched; apt-get update may help: ${stderr}`);
  });
  for (const file of await readdir(packages)) await run('dpkg', ['-x', join(packages, file), folder]);
  return {
    etcd: join(folder, 'usr/bin/etcd'),
    python: INSTALLED.python3,
    pythonPath: join(folder, 'usr/lib/python3/dist-packages'),
    postgres: join(POSTGRES, version, 'bin'),
    version,
  };
}

function refuse(path: string, name: string): never {
  throw new Error(`${path} is missing: apt-get install --no-install-recommends ${name}`);
}
