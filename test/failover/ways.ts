import { allChanges } from '../lab/ledger/changes.ts';
import { faultsInHistory } from '../lab/ledger/history.ts';
import { Ledger } from '../lab/ledger/ledger.ts';
import { faultsAfterwards, summed } from '../lab/ledger/oracle.ts';
import { faultsInTable, storedUsers } from '../lab/ledger/stored-users.ts';
import type { Random } from '../lab/load/random.ts';
import { settle, startLoad } from '../lab/load/writers.ts';
import type { startKeyServer } from '../lab/stage/key-server.ts';
import { startBuiltHost } from '../stage/built-host.ts';
import { untilReady } from '../stage/built-service.ts';
import { environmentOf } from '../stage/service.ts';
import type { Cluster } from './cluster.ts';

/** A service that reaches the cluster in one of the ways. */
export type Way = Awaited<ReturnType<typeof startWay>>;

type Issuer = Awaited<ReturnType<typeof startKeyServer>>;

const WRITERS = 16;

/** In milliseconds, after a refusal. */
const REST = 50;

/** In seconds; longer than any run. */
const DAY = 86_400;

/** Its pool, and the session of /ready. */
const SESSIONS = 11;

/** Starts a service for each way to the primary, each with a database of its own. */
export async function startWays(cluster: Cluster, issuer: Issuer): Promise<readonly Way[]> {
  const places = {
    haproxy: { host: cluster.balancer.host, port: String(cluster.balancer.port) },
    list: {
      host: cluster.nodes.map(({ host }) => host).join(),
      port: cluster.nodes.map(({ port }) => port).join(),
    },
  };
  const ways: Way[] = [];
  for (const [name, { host, port }] of Object.entries(places)) {
    await cluster.query(`CREATE DATABASE by_${name}`, 'postgres');
    ways.push(await startWay(name, { SVC_POSTGRES_HOST: host, SVC_POSTGRES_PORT: port }, cluster, issuer));
  }
  return ways;
}

async function startWay(name: string, place: Record<string, string>, cluster: Cluster, issuer: Issuer) {
  const database = { host: '', port: 0, user: 'postgres', password: '', database: '', name: `by_${name}` };
  const environment = { ...environmentOf({ ...database, drop: async () => [] }, issuer), ...place };
  const host = await startBuiltHost(environment);
  const url = await host.untilListening();
  await untilReady(url);
  const signed = issuer.sign({ exp: Math.floor(Date.now() / 1000) + DAY });
  const token = () => signed;
  const query = (sql: string) => cluster.query(sql, database.name);
  const books = new Ledger();
  let known = new Set<string>();
  let load: { readonly running: ReturnType<typeof startLoad>; readonly from: number } | undefined;

  /** Of all writes so far. */
  const missing = async () => faultsInTable(books, await storedUsers({ query }));

  return {
    name,
    startLoad(random: Random): void {
      const options = { url, token, ledger: books, writers: WRITERS, random: random.branch() };
      const running = startLoad(options);
      running.restFor(REST);
      load = { running, from: books.entries.length };
    },
    stopLoad: async () => load?.running.stop(),
    /** What was sent since the load began, and which acknowledged writes are not there since. */
    async account() {
      const ledger = new Ledger();
      for (const entry of books.entries.slice(load?.from)) ledger.enter(entry);
      const doubtful = ledger.inDoubt.length;
      await settle({ url, token, ledger });
      books.entries.splice(load?.from ?? 0, Number.POSITIVE_INFINITY, ...ledger.entries);
      const all = await missing();
      const lost = all.filter((sentence) => !known.has(sentence));
      known = new Set(all);
      return { ledger, doubtful, lost, restarts: host.isAlive() ? 0 : 1 };
    },
    /** What the oracle says; the changes tell the same story only where nothing may be lost. */
    async faultsAtLast(isWhole: boolean): Promise<readonly string[]> {
      const users = await storedUsers({ query });
      const changes = isWhole ? await allChanges({ url, token }) : [];
      const history = changes.length > 0 ? faultsInHistory(books, changes, users) : [];
      const countSessions = async () => {
        const [row] = await query(`SELECT count(*)::int FROM pg_stat_activity
          WHERE application_name = 'user-management-service' AND datname = '${database.name}'`);
        return Number(row?.count);
      };
      const suspect = {
        host,
        url,
        ledger: books,
        token,
        postgres: { countSessions },
        sessions: () => SESSIONS,
      };
      return [...summed(history), ...(await faultsAfterwards(suspect))];
    },
    stop: () => host.remove(),
  };
}
