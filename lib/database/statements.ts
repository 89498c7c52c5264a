import { setTimeout as sleep } from 'node:timers/promises';
import type { Pool, PoolClient, QueryResult } from 'pg';
import type { WithinDatabaseSpan } from '../observability/database-span.ts';
import { unavailable } from '../problem.ts';
import { currentRequest, type RequestScope } from '../request-scope.ts';
import type { Settings } from '../settings.ts';
import { abandon } from './connection.ts';
import { breaksConnection, problemOfFault } from './faults.ts';
import type { Statement } from './queries.ts';
import { type Retry, retryAfter } from './retry.ts';

/** A statement, and what spans call it: its operation and its table (OpenTelemetry, `db.query.summary`). */
export type NamedStatement = Statement & { readonly summary: string };

/** Runs single statements, each on whichever connection is free. */
export type Statements = {
  /** @throws {Problem} service_unavailable_error when PostgreSQL does not answer in time */
  run(statement: NamedStatement): Promise<QueryResult>;
  /** How many were sent again, by reason. */
  readonly retried: Readonly<Record<Retry['reason'], number>>;
  /** Milliseconds that are left for the statements of the current request; its time begins with its first statement. */
  timeLeft(): number;
  /** Whether so many wait for a connection that it would soon be too many. */
  isCrowded(): boolean;
  /** Gives up all that is running, and whatever comes later: each rejects as unavailable; PostgreSQL stops it. */
  cancel(): void;
};

/**
 * As the value of a parameter: for how long the statement may wait for a lock, in milliseconds as text. It is known only
 * once the statement has its connection.
 */
export const TIME_LEFT = Symbol('time left');

/** In milliseconds: PostgreSQL's refusal has to come before the request's time is up. */
const LOCK_GRACE = 200;

/** In milliseconds, how much longer than PostgreSQL's own limit we wait: it answers first, unless it cannot. */
const GRACE = 250;

/** So many may wait for each connection; one more would only wait in vain. */
const WAITING_PER_CONNECTION = 32;

/**
 * In milliseconds. What has lain idle for longer is not used again: while AWS Lambda keeps the process frozen no timer
 * of the pool's runs, and a connection may be gone without a word.
 */
export const LONGEST_IDLE = 60_000;

/** Statements over a pool. A request waits for connections and answers together no longer than its time. */
export function createStatements(
  pool: Pool,
  settings: Settings['postgres'],
  withinSpan: WithinDatabaseSpan = (_, run) => run(),
): Statements {
  const busy = new Set<PoolClient>();
  const waiting = new Set<(reason: Error) => void>();
  const idleSince = new WeakMap<PoolClient, number>();
  const retried = { connection_lost: 0, deadlock: 0, serialization_failure: 0 };
  let isCancelled = false;
  const timeLimit = settings.statementTimeout * 1000 + GRACE;
  const poolTimeLimit = settings.poolTimeout * 1000;
  const mostWaiting = settings.poolSize * WAITING_PER_CONNECTION;

  async function run(statement: NamedStatement): Promise<QueryResult> {
    const deadline = deadlineOf(currentRequest());
    for (let attempts = 1; ; attempts += 1) {
      try {
        return await withinSpan(statement, () => runOnce(statement, deadline));
      } catch (fault) {
        const retry = retryAfter(fault, attempts, statement.summary.startsWith('SELECT'));
        if (!retry || performance.now() + retry.pause >= deadline) throw problemOfFault(fault);
        retried[retry.reason] += 1;
        await sleep(retry.pause);
      }
    }
  }

  /** The statements of one request share one time limit, which begins with the first. */
  function deadlineOf(request: RequestScope | undefined): number {
    if (!request) return performance.now() + timeLimit;
    request.statementsUntil ??= Math.min(performance.now() + timeLimit, request.answeredBy);
    return request.statementsUntil;
  }

  async function runOnce({ sql, parameters }: Statement, deadline: number): Promise<QueryResult> {
    if (pool.waitingCount >= mostWaiting) throw unavailable('too many requests wait for a connection');
    const client = await freshConnection(deadline);
    busy.add(client);
    let fault: unknown;
    try {
      const query_timeout = Math.max(deadline - performance.now(), 1);
      const values = parameters.map((value) =>
        value === TIME_LEFT ? lockTimeoutWithin(query_timeout) : value,
      );
      return await client.query({ text: sql, values, query_timeout } as never);
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

  async function freshConnection(deadline: number): Promise<PoolClient> {
    for (;;) {
      const client = await freeConnection(deadline);
      if (Date.now() - (idleSince.get(client) ?? Date.now()) <= LONGEST_IDLE) return client;
      abandon(client);
      client.release(true);
    }
  }

  /** The pool itself waits no longer than SVC_POSTGRES_POOL_TIMEOUT. */
  function freeConnection(deadline: number): Promise<PoolClient> {
    return new Promise((resolve, reject) => {
      if (isCancelled) return reject(cancelled());
      if (pool.ending) return reject(closed());
      const left = deadline - performance.now();
      if (left <= 0) return reject(outOfTime());
      const timer = left < poolTimeLimit ? setTimeout(giveUp, left) : undefined;
      waiting.add(refuse);
      pool.connect((error, client) => {
        clearTimeout(timer);
        // Given up in the meantime: nobody waits for it any more.
        if (!waiting.delete(refuse)) client?.release();
        else if (client) resolve(client);
        else reject(noConnection(error));
      });

      function refuse(reason: Error): void {
        clearTimeout(timer);
        reject(reason);
      }

      function giveUp(): void {
        if (waiting.delete(refuse)) reject(outOfTime());
      }
    });
  }

  return {
    run,
    retried,
    isCrowded: () => pool.waitingCount >= mostWaiting / 2,
    timeLeft: () => deadlineOf(currentRequest()) - performance.now(),
    cancel() {
      isCancelled = true;
      for (const client of busy) abandon(client);
      for (const refuse of waiting) refuse(cancelled());
      waiting.clear();
    },
  };
}

function lockTimeoutWithin(milliseconds: number): string {
  return String(Math.max(Math.floor(milliseconds - LOCK_GRACE), 1));
}

/** Whatever the reason, TLS and passwords included, nothing has been sent yet. */
const noConnection = (cause: Error | undefined) => unavailable(`no connection: ${cause?.message}`, cause);

const outOfTime = () => unavailable('the time of the request is up');

const closed = () => unavailable('the connections are closed, for the service is shutting down');

const cancelled = () => unavailable('the statement was cancelled by the shutdown');
