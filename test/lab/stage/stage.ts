import { setTimeout as sleep } from 'node:timers/promises';
import type { Variables } from '../../../lib/settings/environment.ts';
import { refusedWindows } from '../../model/bridge.ts';
import { faultsInRegisters } from '../../model/linearizability.ts';
import { hasSpin } from '../../model/spin.ts';
import { type FeedHistory, windowsIn } from '../../model/windows.ts';
import { type HostOptions, startBuiltHost } from '../../stage/built-service.ts';
import { untilReady } from '../../stage/caller.ts';
import { startDisposablePostgres } from '../../stage/disposable-postgres.ts';
import { startProxy } from '../../stage/proxy.ts';
import { environmentOf } from '../../stage/service.ts';
import { startIssuer } from '../../stage/tokens.ts';
import { allChanges } from '../ledger/changes.ts';
import { feedHistoryOf } from '../ledger/feed.ts';
import { faultsInHistory, storedUsers } from '../ledger/history.ts';
import { Ledger } from '../ledger/ledger.ts';
import { faultsAfterwards, summed } from '../ledger/oracle.ts';
import { createCaller } from '../load/caller.ts';
import { settle, sideBySide, startCallers } from '../load/callers.ts';
import { type Random, seededRandom } from '../load/random.ts';
import { mostMemory, residentMemory } from '../meters/memory.ts';

/** Windows of a history that are searched in the model, each of which takes a millisecond. */
const MAX_WINDOWS = 10_000;

/** All that a row stands on, and the record of what it found. */
export type Stage = Awaited<ReturnType<typeof openStage>>;

export type ServiceUnderFault = Awaited<ReturnType<Stage['startService']>>;

type Options = {
  readonly seed: number;
  readonly trials: number;
  readonly postgres?: Parameters<typeof startDisposablePostgres>[0];
  /** Whether histories of the feed are searched in the model, if Spin is installed. */
  readonly searchesModel?: boolean | undefined;
};

type ServiceOptions = HostOptions & {
  /** Whether the row looks after it by itself: it may end, and answer what it likes. */
  readonly isOnItsOwn?: boolean;
  /** The ledger of an earlier service, which this one goes on with. */
  readonly ledger?: Ledger;
};

/** The figures of a row before its first trial. */
export const NO_FIGURES = { trials: 0, recoverySeconds: 0, memoryChange: 0, lost: 0, windows: 0 };

/** Starts a PostgreSQL and a key server for one row. */
export async function openStage({ seed, trials, postgres: options, searchesModel }: Options) {
  const random: Random = seededRandom(seed);
  const [postgres, issuer] = await Promise.all([startDisposablePostgres(options), startIssuer()]);
  const ownEnvironment = environmentOf(postgres, issuer);
  const faults: string[] = [];
  const suspects: (() => Promise<string[]>)[] = [];
  const cleanUps: (() => unknown)[] = [];
  const ledgers: Ledger[] = [];
  const pools: (() => number)[] = [];
  const figures = { ...NO_FIGURES };
  let closed: Promise<readonly string[]> | undefined;
  let signed: { readonly token: Promise<string>; readonly at: number; readonly keys: unknown } | undefined;

  /** A token with both roles, the same for a minute unless the keys change. */
  function token(): Promise<string> {
    const { keys } = issuer;
    if (signed?.keys !== keys || performance.now() - signed.at > 60_000) {
      const exp = Math.floor(Date.now() / 1000) + 3600;
      signed = { token: issuer.sign({ exp }), at: performance.now(), keys };
    }
    return signed.token;
  }

  /** Enters the sentence as a fault if it does not hold, with what was seen. */
  function claim(sentence: string, holds: boolean, seen?: unknown): void {
    if (!holds)
      faults.push(seen === undefined ? sentence : `${sentence}: ${JSON.stringify(seen)?.slice(0, 400)}`);
  }

  function tried(): void {
    figures.trials += 1;
  }

  /** Undoes something at the end, the latest first. */
  const defer = (cleanUp: () => unknown) => void cleanUps.push(cleanUp);

  /** The most sessions that the services may have together: their pools, and one each for /ready. */
  const sessions = () => pools.reduce((sum, pool) => sum + pool(), 0);

  function found(sentences: readonly string[]): void {
    figures.lost += sentences.length;
    faults.push(...summed(sentences));
  }

  /** Searches an execution of the model for each window of a history of the feed. */
  async function checkFeed(history: FeedHistory): Promise<void> {
    if (!searchesModel || !(await hasSpin())) return;
    const windows = windowsIn(history).slice(0, MAX_WINDOWS);
    figures.windows += windows.length;
    claim('the history has windows', windows.length > 0);
    const refused = await refusedWindows(windows);
    found(refused.map((window) => `no execution of the model has ${JSON.stringify(window)}`));
  }

  function openLedger(): Ledger {
    const ledger = new Ledger();
    ledgers.push(ledger);
    return ledger;
  }

  async function startService(variables: Variables = {}, options: ServiceOptions = {}) {
    const ledger = options.ledger ?? openLedger();
    const environment = { ...ownEnvironment, ...variables };
    const host = await startBuiltHost(environment, options);
    defer(host.remove);
    const url = await host.untilListening();
    await untilReady(url);
    const pool = Number(variables.SVC_POSTGRES_POOL_SIZE ?? 10);
    pools.push(() => (host.isAlive() ? pool + 1 : 0));
    const suspect = { host, url, ledger, token, postgres, sessions };
    if (!options.isOnItsOwn) suspects.push(() => faultsAfterwards(suspect));
    const begunWith = residentMemory(host.processId);

    return {
      ...host,
      ...suspect,
      environment,
      caller: (connections = 1) => createCaller({ ...suspect, connections }),
      startLoad: (callers: number) => startCallers(suspect, callers, random.branch(), { areAlone: true }),
      /** Sends creates in doubt again, then holds its ledger, or that of all, against its table and its changes. */
      async checkBooks(books = ledger): Promise<void> {
        await settle({ ...suspect, ledger: books });
        const query = (sql: string) => postgres.query(sql, environment.SVC_POSTGRES_DB);
        const stored = await storedUsers({ query });
        const changes = await allChanges(suspect);
        found([...faultsInHistory(books, changes, stored), ...faultsInRegisters(books)]);
        await checkFeed(feedHistoryOf(books, changes));
      },
      /** How many megabytes it has grown by since it was ready. */
      memoryGrowth: () => residentMemory(host.processId) - begunWith,
      /** The most resident memory that it has had, in megabytes. */
      mostMemory: () => mostMemory(host.processId),
      /** Its resident memory, in megabytes, a second after it was ready: the identity provider's keys are there. */
      async memoryAtRest(): Promise<number> {
        await sleep(1000);
        return residentMemory(host.processId);
      },
    };
  }

  /** Undoes everything, whatever of it fails; resolves with a sentence for each failure. */
  async function close(): Promise<readonly string[]> {
    const failures: string[] = [];
    for (const cleanUp of [() => issuer.stop(), () => postgres.stop(), ...cleanUps].reverse()) {
      try {
        await cleanUp();
      } catch (error) {
        failures.push(`not undone: ${error}`);
      }
    }
    return failures;
  }

  return {
    seed,
    trials,
    random,
    postgres,
    issuer,
    token,
    claim,
    figures,
    faults,
    ledgers,
    startService,
    checkFeed,
    /** Books of their own, for callers or services that are counted apart. */
    openLedger,
    /** A proxy in front of this, by default in front of PostgreSQL. */
    async startProxy(target: Parameters<typeof startProxy>[0] = postgres) {
      const proxy = await startProxy(target);
      defer(() => proxy.stop());
      return proxy;
    },
    defer,
    tried,
    /** The numbers of the trials, each of which counts when the next one begins. */
    *tries(): Generator<number> {
      for (let trial = 0; trial < trials; trial += 1, tried()) yield trial;
    },
    /** Makes the trials, or so many, by so many workers at once. */
    trySideBySide: (workers: number, trial: (number: number) => Promise<unknown>, times = trials) =>
      sideBySide(workers, times, (number) => trial(number).then(tried)),
    /** The longest recovery counts. */
    recovered(seconds: number): void {
      figures.recoverySeconds = Math.max(figures.recoverySeconds, seconds);
    },
    /** Asks the oracle about every service that was started. */
    async judge(): Promise<void> {
      for (const suspect of suspects) faults.push(...summed(await suspect()));
    },
    close: () => (closed ??= close()),
  };
}
