import { allChanges } from '../lab/ledger/changes.ts';
import { faultsInHistory, storedUsers } from '../lab/ledger/history.ts';
import { Ledger } from '../lab/ledger/ledger.ts';
import { createCaller } from '../lab/load/caller.ts';
import { settle, startCallers } from '../lab/load/callers.ts';
import { seededRandom } from '../lab/load/random.ts';
import { atNodes, connectNodes } from '../stage/citus.ts';
import { blockOf } from '../stage/page-blocks.ts';
import { inDatabase } from '../stage/rows.ts';
import { startService } from '../stage/service.ts';
import { startIssuer } from '../stage/tokens.ts';
import { until } from '../stage/until.ts';
import { type Nodes, startNodes } from './nodes.ts';

const DATABASE = 'users';
const DAY_SECONDS = 86_400;

/** A directory of users, with a service and the ledger of its requests. */
export type Directory = Awaited<ReturnType<typeof startDirectory>>;

/** Starts Citus with two directories, the first on the first worker and the second on the second one. */
export async function startDirectories() {
  const nodes = await startNodes();
  const [coordinator, ...workers] = nodes;
  for (const node of nodes) await inDatabase(node, `CREATE DATABASE ${DATABASE}`);
  await connectNodes(nodes, DATABASE);
  const query = (...sql: readonly string[]) => inDatabase({ ...coordinator, database: DATABASE }, ...sql);
  const issuer = await startIssuer();
  const move = async (directory: string, node: Nodes[number]) => {
    const statements = blockOf('infra/postgresql/citus.md', 'Moving a directory').replace(
      'customers',
      directory,
    );
    await query(...atNodes(statements, [node]).trimEnd().split('\n'));
  };
  const directories: Directory[] = [];
  for (const [number, name] of ['one', 'two'].entries()) {
    await query(blockOf('infra/postgresql/citus.md', 'A new directory').replaceAll('customers', name));
    const directory = await startDirectory(name, coordinator, issuer);
    const worker = workers[number] as Nodes[number];
    const [place] = await query(
      `SELECT nodeport FROM citus_shards WHERE table_name = '${name}.users'::regclass`,
    );
    if (place?.nodeport !== worker.port) await move(name, worker);
    directories.push(directory);
  }
  return {
    nodes,
    directories: directories as [Directory, Directory],
    query,
    move,
    async stop() {
      for (const directory of directories) await directory.stop();
      await issuer.stop();
      for (const node of nodes) await node.stop();
    },
  };
}

async function startDirectory(
  name: string,
  coordinator: Nodes[number],
  issuer: Awaited<ReturnType<typeof startIssuer>>,
) {
  /** An instance that reaches Citus through a node. */
  const startInstance = ({ host, port }: Nodes[number]) => {
    const database = { host, port, user: name, password: '', database: DATABASE, name: DATABASE };
    return startService({}, { database, issuer });
  };
  const service = await startInstance(coordinator);
  const signed = issuer.sign({ exp: Math.floor(Date.now() / 1000) + DAY_SECONDS });
  const ledger = new Ledger();
  const options = { url: service.url, token: () => signed, ledger };
  const query = (...sql: readonly string[]) =>
    inDatabase({ ...coordinator, user: name, database: DATABASE }, ...sql);
  return {
    name,
    ledger,
    startInstance,
    startCallers: (callers: number) => startCallers(options, callers, seededRandom(1), { areAlone: true }),
    /** What does not fit together: requests and responses, changes, and the table. */
    async faults(): Promise<readonly string[]> {
      await settle(options);
      return faultsInHistory(ledger, await allChanges(options), await storedUsers({ query }));
    },
    /** The longest time without a success from `begun` until now, in milliseconds. */
    longestPause(begun: number): number {
      const times = ledger.successesAfter(begun).map(({ answered }) => answered);
      const sorted = [begun, ...times, performance.now()].sort((a, b) => a - b);
      return Math.max(...sorted.slice(1).map((time, before) => time - (sorted[before] as number)));
    },
    /** Resolves when a create is 201, which takes 10 seconds at most. */
    untilWritten: () =>
      until('a create is 201', async () => {
        const caller = createCaller(options);
        const { status } = await caller.create({ email: `${performance.now()}@example.com` });
        caller.close();
        return status === 201;
      }),
    stop: () => service.stop(),
  };
}
