import { existsSync } from 'node:fs';
import { cp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fromDebian } from '../lab/stage/packages.ts';

/** Patroni, etcd, and what Patroni imports: unpacked, not installed. */
const PACKAGES = [
  'patroni',
  'etcd-server',
  ...'etcd psycopg2 click prettytable psutil yaml dateutil urllib3 pysyncobj cdiff six wcwidth dnspython'
    .split(' ')
    .map((name) => `python3-${name}`),
];

const INSTALLED = { python3: '/usr/bin/python3', haproxy: '/usr/sbin/haproxy' } as const;

const POSTGRES = '/usr/lib/postgresql';

export type Programs = Awaited<ReturnType<typeof unpackPrograms>>;

/** Puts Patroni and etcd of Debian's packages into `folder`, where the account of PostgreSQL can read them. */
export async function unpackPrograms(folder: string) {
  for (const [name, path] of Object.entries(INSTALLED)) if (!existsSync(path)) refuse(path, name);
  const versions = existsSync(POSTGRES) ? await readdir(POSTGRES) : [];
  const version = versions.find((name) => existsSync(join(POSTGRES, name, 'bin/pg_rewind')));
  if (!version) refuse(`${POSTGRES}/*/bin/pg_rewind`, 'postgresql');

  const packages = await fromDebian(PACKAGES, { alone: true });
  await cp(join(packages, 'root'), folder, { recursive: true });
  return {
    etcd: join(folder, 'usr/bin/etcd'),
    python: INSTALLED.python3,
    pythonPath: join(folder, 'usr/lib/python3/dist-packages'),
    postgres: join(POSTGRES, version, 'bin'),
  };
}

function refuse(path: string, name: string): never {
  throw new Error(`${path} is missing: apt-get install --no-install-recommends ${name}`);
}
