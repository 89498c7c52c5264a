import type { Pool, PoolClient, QueryResult } from 'pg';
import type { Tracing } from '../observability/tracing.ts';
import { unavailable } from '../problem.ts';
import { currentRequest, type RequestScope } from '../request-scope.ts';
import type { Settings } from '../settings.ts';
import { abandon } from './connection.ts';
import { breaksConnection, mayBeRetried, problemOfFault } from './faults.ts';
import type { Statement } from './queries.ts';

/** A statement, and what spans call it: its operation and its table (OpenTelemetry, `db.query.summary`). */
export type NamedStatement = Statement & { readonly summary: string };

/** Runs single statements, each on whichever connection is free. */
export type Statements = {
  /** @throws {Problem} service_unavailable_error when PostgreSQL does not answer in time */
  run(statement: NamedStatement): Promise<QueryResult>;
  /** Gives up all that is running, and whatever comes later: each rejects as unavailable; PostgreSQL stops it. */
  cancel(): void;
};

/** How much longer than PostgreSQL's own limit we wait: it answers first, unless it cannot. */
const GRACE = 250;
const TRIES = 3;

/** So many may wait for each connection; one more would only wait in vain. */
const WAITING_PER_CONNECTION = 32;

/**
 * In milliseconds. What has lain idle for longer is not used again: while AWS Lambda keeps the process frozen no timer
 * of the pool's runs, and a connection may be gone without a word.
 */
export const LONGEST_IDLE = 60_000;

/** Statements over a pool. A request waits for connection and answer together no longer than the two limits say. */
export function createStatements(pool: Pool, settings: Settings['postgres'], tracing?: Tracing): Statements {
  const busy = new Set<PoolClient>();
  const waiting = new Set<(reason: Error) => void>();
  const idleSince = new WeakMap<PoolClient, number>();
  let isCancelled = false;
  const withinSpan = tracing?.databaseSpans(settings) ?? ((_, run) => run());
  const timeLimit = settings.statementTimeout * 1000 + GRACE;
  const mostWaiting = settings.poolSize * WAITING_PER_CONNECTION;

  async function run(statement: NamedStatement): Promise<QueryResult> {
    const deadline = deadlineOf(currentRequest());
    for (let left = TRIES; ; left -= 1) {
      try {
        return await withinSpan(statement, () => runOnce(statement, deadline));
      } catch (fault) {
        if (left === 0 || !mayBeRetried(fault)) throw problemOfFault(fault);
      }
    }
  }

  /** The statements of one request share one time limit. */
  function deadlineOf(request: RequestScope | undefined): number {
    const deadline = request?.statementsUntil ?? performance.now() + timeLimit;
    if (request) request.statementsUntil = deadline;
    return deadline;
  }

  async function runOnce({ sql, parameters }: Statement, deadline: number): Promise<QueryResult> {
    if (pool.waitingCount >= mostWaiting) throw unavailable('too many requests wait for a connection');
    const client = await freshConnection();
    busy.add(client);
    let fault: unknown;
    try {
      const query_timeout = Math.max(deadline - performance.now(), 1);
      return await client.query({ text: sql, values: [...parameters], query_timeout } as never);
    } catch (error) {
      fault = error;
      throw error;
    } finally {
      busy.delete(client);
      const isBroken = fault !== undefined && breaksConnection(fault);
      // A connection given up while its statement runs would hand its late answer to the next one.
      if (isBroken) abandon(client);
      idleSince.set(client, Date.now());
      client.release(isBroken);
    }
  }

  async function freshConnection(): Promise<PoolClient> {
    for (;;) {
      const client = await freeConnection();
      if (Date.now() - (idleSince.get(client) ?? Date.now()) <= LONGEST_IDLE) return client;
      abandon(client);
      client.release(true);
    }
  }

  function freeConnection(): Promise<PoolClient> {
    return new Promise((resolve, reject) => {
      if (isCancelled) return reject(cancelled());
      waiting.add(reject);
      pool.connect((error, client) => {
        // Cancelled in the meantime: nobody waits for it any more.
        if (!waiting.delete(reject)) client?.release();
        else if (client) resolve(client);
        else reject(noConnection(error));
      });
    });
  }

  return {
    run,
    cancel() {
      isCancelled = true;
      for (const client of busy) abandon(client);
      for (const reject of waiting) reject(cancelled());
      waiting.clear();
    },
  };
}

/** Whatever the reason, TLS and passwords included, nothing has been sent yet. */
const noConnection = (cause: Error | undefined) => unavailable(`no connection: ${cause?.message}`, cause);

const cancelled = () => unavailable('the statement was cancelled by the shutdown');
