import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { freePort } from '../../host/development/free-port.ts';
import { accountFor } from '../../host/development/postgres/place.ts';
import { startFront } from '../lab/stage/front.ts';
import { isListening } from '../stage/listening.ts';
import { until } from '../stage/until.ts';
import { type ClusterNode, createNode, type Replication } from './node.ts';
import { unpackPrograms } from './programs.ts';

export type Cluster = Awaited<ReturnType<typeof startCluster>>;

type Member = { readonly name: string; readonly role: string; readonly state: string };

/** A PostgreSQL that takes writes: of another start it is another one. */
export type Writer = { readonly node: ClusterNode; readonly startedAt: string };

/** In milliseconds. */
const LOOK_PERIOD_MS = 20;

/** In seconds. */
const HEALTHY_LIMIT_S = 90;

/**
 * Starts three nodes, each with a Patroni, over one etcd, and a haproxy that leads to the primary. All on loopback. `defer`
 * gets what ends them in any state.
 */
export async function startCluster(replication: Replication, defer: (undo: () => unknown) => void) {
  const folder = await mkdtemp(join(tmpdir(), 'user-management-failover-'));
  defer(() => rm(folder, { recursive: true, force: true, maxRetries: 9 }));
  const account = await accountFor(folder);
  await chmod(folder, 0o755);
  const programs = await unpackPrograms(join(folder, 'programs'));
  const own = join(folder, 'nodes');
  await mkdir(own);
  if (account.uid !== undefined) await chown(own, account.uid, account.gid ?? account.uid);
  const [etcdPort, peerPort] = [await freePort(), await freePort()];

  const log = await open(join(folder, 'etcd.log'), 'a');
  const options = [
    '--enable-v2',
    ...['--data-dir', join(own, 'etcd'), '--listen-peer-urls', `http://127.0.0.1:${peerPort}`],
    ...['--listen-client-urls', `http://127.0.0.1:${etcdPort}`],
    ...['--advertise-client-urls', `http://127.0.0.1:${etcdPort}`],
    ...['--initial-advertise-peer-urls', `http://127.0.0.1:${peerPort}`],
    ...['--initial-cluster', `default=http://127.0.0.1:${peerPort}`],
  ];
  const etcd = spawn(programs.etcd, options, { ...account, cwd: '/', stdio: ['ignore', log.fd, log.fd] });
  await once(etcd, 'spawn');
  await log.close();
  const ended = once(etcd, 'exit');
  defer(() => etcd.kill('SIGKILL') && ended);
  await until('etcd listens', () => isListening(etcdPort));

  const nodes: ClusterNode[] = [];
  for (const name of ['one', 'two', 'three']) {
    const [port, restPort] = [await freePort(), await freePort()];
    const node = { name, folder: own, account, programs, replication, etcdPort, port, restPort };
    nodes.push(createNode(node));
  }
  for (const node of nodes) {
    defer(node.kill);
    await node.start();
  }
  const balancer = await startFront('haproxy', (port) => balancing(port, nodes));
  defer(balancer.stop);

  /** What any Patroni says of all of them. */
  async function members(): Promise<readonly Member[]> {
    for (const { restPort } of nodes) {
      const asked = fetch(`http://127.0.0.1:${restPort}/cluster`, { signal: AbortSignal.timeout(1000) });
      const cluster = await asked.then((response) => response.json()).catch(() => undefined);
      const { members } = (cluster ?? {}) as { members?: readonly Member[] };
      if (members) return members;
    }
    return [];
  }

  async function isHealthy(): Promise<boolean> {
    const all = await members();
    const isRunning = all.every(({ state }) => state === 'running' || state === 'streaming');
    const hasStandby = replication === 'asynchronous' || all.some(({ role }) => role === 'sync_standby');
    return (
      all.length === nodes.length && isRunning && hasStandby && all.some(({ role }) => role === 'leader')
    );
  }

  async function writers(): Promise<readonly Writer[]> {
    return (await Promise.all(nodes.map(writerAt))).filter((writer) => writer !== undefined);
  }

  async function onlyWriter(): Promise<Writer | undefined> {
    const [writer, ...others] = await writers();
    return others.length === 0 ? writer : undefined;
  }

  async function query(sql: string, database: string): Promise<Record<string, unknown>[]> {
    const [writer] = await writers();
    if (!writer) throw new Error('no node takes writes');
    return rowsOf(writer.node, sql, database);
  }

  return {
    nodes,
    balancer: { host: '127.0.0.1', port: balancer.port },
    untilHealthy: () =>
      until('all nodes are well', isHealthy, { seconds: HEALTHY_LIMIT_S, every: 200 }).catch(
        async (error) => {
          const logs = await Promise.all(nodes.map(async (node) => `${node.name}: ${await node.log()}`));
          throw new Error(`${error.message}\n${logs.join('\n')}`);
        },
      ),
    query,
    primary: () => until('one node takes writes', onlyWriter, { every: 200 }),
    /** Another one than `before`, as soon as it takes writes. */
    untilTakenOver(before: Writer, seconds: number) {
      const isOther = ({ node, startedAt }: Writer) => node !== before.node || startedAt !== before.startedAt;
      const look = async () => (await writers()).find(isOther);
      return until('another takes writes', look, { seconds, every: LOOK_PERIOD_MS });
    },
  };
}

/** Undefined while it takes no writes, or does not respond at once. */
async function writerAt(node: ClusterNode): Promise<Writer | undefined> {
  const sql = `SELECT pg_postmaster_start_time()::text AS started_at
               WHERE current_setting('transaction_read_only') = 'off'`;
  const [row] = await rowsOf(node, sql, 'postgres', 250).catch(() => []);
  return row && { node, startedAt: String(row.started_at) };
}

async function rowsOf({ host, port }: ClusterNode, sql: string, database: string, limit = 10_000) {
  const client = new pg.Client({
    ...{ host, port, database, user: 'postgres', ssl: false },
    ...{ connectionTimeoutMillis: limit, query_timeout: limit },
  });
  client.on('error', () => {});
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    void client.end();
  }
}

/**
 * As Patroni's documentation has it, but that it asks more often, and does not try the same server again, because it would
 * wait for a second before that. The service tries again by itself.
 */
const balancing = (port: number, nodes: readonly ClusterNode[]) => `
defaults
  mode tcp
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  retries 0

listen primary
  bind 127.0.0.1:${port}
  option httpchk OPTIONS /primary
  http-check expect status 200
  default-server inter 500ms fall 2 rise 1 on-marked-down shutdown-sessions
${nodes.map((node) => `  server ${node.name} 127.0.0.1:${node.port} check port ${node.restPort}`).join('\n')}
`;
