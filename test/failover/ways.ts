import { allChanges } from '../lab/ledger/changes.ts';
import { faultsInHistory, storedUsers } from '../lab/ledger/history.ts';
import { Ledger } from '../lab/ledger/ledger.ts';
import { faultsAfterwards } from '../lab/ledger/oracle.ts';
import { settle, startCallers } from '../lab/load/callers.ts';
import type { Random } from '../lab/load/random.ts';
import { startBuiltService } from '../stage/built-service.ts';
import { addressOf } from '../stage/proxy.ts';
import type { startIssuer } from '../stage/tokens.ts';
import type { Cluster } from './cluster.ts';

type Issuer = Awaited<ReturnType<typeof startIssuer>>;

export type Way = Awaited<ReturnType<typeof startWay>>;

const WRITERS = 16;

/** Longer than any run. */
const DAY_S = 86_400;

/** Its pool, and the session of /ready. */
const SESSIONS = 11;

/** Starts a service for each way to the primary, each with a database of its own. */
export async function startWays(cluster: Cluster, issuer: Issuer, defer: (undo: () => unknown) => void) {
  const places = {
    haproxy: addressOf(cluster.balancer),
    list: addressOf(...cluster.nodes),
  };
  const ways: Way[] = [];
  for (const [name, place] of Object.entries(places)) {
    await cluster.query(`CREATE DATABASE by_${name}`, 'postgres');
    const way = await startWay(name, place, cluster, issuer);
    defer(way.remove);
    ways.push(way);
  }
  return ways;
}

async function startWay(name: string, place: Record<string, string>, cluster: Cluster, issuer: Issuer) {
  const database = { host: '', port: 0, user: 'postgres', password: '', database: '', name: `by_${name}` };
  const host = await startBuiltService(place, { beside: { database, issuer } });
  const { url } = host;
  const signed = issuer.sign({ exp: Math.floor(Date.now() / 1000) + DAY_S });
  const token = () => signed;
  const query = (sql: string) => cluster.query(sql, database.name);
  const books = new Ledger();
  let known = new Set<string>();
  let load: { readonly running: ReturnType<typeof startCallers>; readonly from: number } | undefined;

  return {
    name,
    startLoad(random: Random): void {
      const running = startCallers({ url, token, ledger: books }, WRITERS, random.branch(), {
        areAlone: true,
      });
      load = { running, from: books.entries.length };
    },
    stopLoad: async () => load?.running.stop(),
    /** What was sent since the load began, and what of the history of all is wrong since. */
    async account() {
      const ledger = new Ledger();
      for (const entry of books.entries.slice(load?.from)) ledger.enter(entry);
      const doubtful = ledger.inDoubt.length;
      await settle({ url, token, ledger });
      books.entries.splice(load?.from ?? 0, Number.POSITIVE_INFINITY, ...ledger.entries);
      const all = faultsInHistory(books, await allChanges({ url, token }), await storedUsers({ query }));
      const faults = all.filter((sentence) => !known.has(sentence));
      known = new Set(all);
      const lost = faults.filter((sentence) => sentence.endsWith('has 0 changes')).length;
      return { ledger, doubtful, lost, faults, restarts: host.isAlive() ? 0 : 1 };
    },
    async faultsAtLast(): Promise<readonly string[]> {
      const countSessions = async () => {
        const [row] = await query(`SELECT count(*)::int FROM pg_stat_activity
          WHERE application_name = 'user-management-service' AND datname = '${database.name}'`);
        return Number(row?.count);
      };
      const postgres = { countSessions };
      return faultsAfterwards({ host, url, ledger: books, token, postgres, sessions: () => SESSIONS });
    },
    remove: host.remove,
  };
}
