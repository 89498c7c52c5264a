import { AsyncResource } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient } from 'pg';
import type { Settings } from '../../settings.ts';
import { engineOf } from '../engines.ts';
import { Client } from './client.ts';
import { abandon, clientConfig } from './connection.ts';

/** In milliseconds: so often it is looked who waits, so long one may wait, and so long it is until others are asked for. */
const LOOK_EVERY = 100;
const SILENT = 250;
const ASK_EVERY = 500;

/** In milliseconds: an answer that has come may not have been read yet. */
const UNREAD = 20;

/** In seconds. */
const TIME_LIMIT = 0.5;

/** A connection: when bytes last came, since when an answer has been awaited, and whether it is known to be alive since. */
type Watched = { heardAt: number; awaitsSince: number | undefined; isRunning: boolean };

/**
 * A network may forget a connection without telling either end. So when an answer does not come, PostgreSQL is asked by
 * another connection whether it runs the statement: if not, the connection is dead and is given up at once, and with it
 * all that have been silent for as long, so that they are not tried one after the other.
 */
export function giveUpTheDead(pools: readonly Pool[], postgres: Settings['postgres']): void {
  // A pooler gives other numbers to its sessions than PostgreSQL.
  if (!engineOf(postgres).showsSessions || postgres.pooler !== 'none') return;

  const all = new Map<PoolClient, Watched>();
  let timer: NodeJS.Timeout | undefined;
  let askedAt = Number.NEGATIVE_INFINITY;
  // Of no request.
  const lookOutside = AsyncResource.bind(look);

  for (const pool of pools) {
    pool.on('connect', (client) => {
      const watched: Watched = { heardAt: performance.now(), awaitsSince: undefined, isRunning: false };
      all.set(client, watched);
      streamOf(client).on('data', () => {
        watched.heardAt = performance.now();
        watched.isRunning = false;
      });
    });
    pool.on('remove', (client) => all.delete(client));
    pool.on('acquire', () => {
      timer ??= setInterval(lookOutside, LOOK_EVERY).unref();
    });
  }

  function look(): void {
    const now = performance.now();
    for (const [client, watched] of all) {
      watched.awaitsSince = awaitsAnswer(client) ? (watched.awaitsSince ?? now) : undefined;
    }
    if (pools.every(({ totalCount, idleCount }) => totalCount === idleCount)) {
      clearInterval(timer);
      timer = undefined;
    }
    const isSuspect = ({ heardAt, awaitsSince = now, isRunning }: Watched) =>
      !isRunning && now - Math.max(heardAt, awaitsSince) >= SILENT;
    const suspects = [...all].filter(([, watched]) => isSuspect(watched));
    if (suspects.length === 0 || now - askedAt < ASK_EVERY) return;
    askedAt = now;
    void giveUp(new Map(suspects), now);
  }

  async function giveUp(suspects: ReadonlyMap<PoolClient, Watched>, since: number): Promise<void> {
    const running = await runningAmong([...suspects.keys()], postgres);
    for (const [client, watched] of suspects) watched.isRunning = running?.has(idOf(client)) === true;
    await sleep(UNREAD);
    const dead = [...suspects].filter(
      ([client, { heardAt }]) => heardAt < since && awaitsAnswer(client) && !running?.has(idOf(client)),
    );
    if (!running || dead.length === 0) return;
    for (const [client, { heardAt }] of all) {
      if (awaitsAnswer(client) || heardAt > since - SILENT) continue;
      // The pool takes an error for the end of a connection that lies idle.
      client.emit('error', new Error('the connection is dead'));
      abandon(client);
    }
    for (const [client] of dead) abandon(client);
  }
}

/** The sessions of these that PostgreSQL runs a statement for; undefined when it cannot be asked. */
async function runningAmong(
  clients: readonly PoolClient[],
  postgres: Settings['postgres'],
): Promise<ReadonlySet<number> | undefined> {
  const [{ host, port }] = clients as unknown as [{ host: string; port: number }];
  const client = new Client(clientConfig({ ...postgres, servers: [{ host, port }] }, TIME_LIMIT));
  const limit = setTimeout(() => abandon(client), TIME_LIMIT * 1000);
  try {
    await client.connect();
    const { rows } = await client.query(
      "select pid from pg_stat_activity where pid = any($1) and state <> 'idle'",
      [clients.map(idOf)],
    );
    return new Set(rows.map(({ pid }) => Number(pid)));
  } catch {
    return undefined;
  } finally {
    clearTimeout(limit);
    abandon(client);
  }
}

/** What pg knows of a client and does not declare. */
type Innards = {
  readonly connection: { readonly stream: NodeJS.ReadableStream };
  readonly processID: number;
  readonly readyForQuery: boolean;
};

const innardsOf = (client: PoolClient) => client as unknown as Innards;
const streamOf = (client: PoolClient) => innardsOf(client).connection.stream;
const idOf = (client: PoolClient) => innardsOf(client).processID;
const awaitsAnswer = (client: PoolClient) => !innardsOf(client).readyForQuery;
