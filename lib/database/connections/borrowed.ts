import type { Pool, PoolClient } from 'pg';
import { unavailable } from '../../problem.ts';
import { abandon } from '../servers/connection.ts';
import { HostChanged, type Hosts } from '../servers/hosts.ts';
import { Pipeline } from './pipeline.ts';
import { closed } from './way.ts';

/** A connection of a pool that is in use. */
export type Borrowed = {
  readonly pipeline: Pipeline;
  /** Gives it back, or ends it when it is of no more use. */
  release(): void;
};

/**
 * In milliseconds. What has lain idle for longer is not used again: while AWS Lambda keeps the process frozen no timer
 * of the pool's runs, and a connection may be gone without a word.
 */
export const LONGEST_IDLE = 60_000;

/** Borrows a connection, for whoever calls back; rejects with the reason why there is none. */
export type Borrow = () => Promise<Borrowed>;

type BorrowOptions = {
  /** Whether statements are prepared by name: not behind a pooler, where the next transaction has another session. */
  readonly areNamed: boolean;
  /** Whether connections are given back after each statement, so that one can be waited for when no more are opened. */
  readonly areReturned: boolean;
  readonly hosts: Hosts;
};

/** Borrows from this pool, each connection with the statements that it knows already. */
export function borrowingFrom(pool: Pool, { areNamed, areReturned, hosts }: BorrowOptions): Borrow {
  const { max } = pool.options;
  let open = 0;
  pool.on('connect', () => {
    open += 1;
  });
  pool.on('remove', () => {
    open -= 1;
  });
  const pipelines = new WeakMap<PoolClient, Pipeline>();
  const idleSince = new WeakMap<PoolClient, number>();

  function pipelineOf(client: PoolClient): Pipeline {
    const known = pipelines.get(client);
    if (known) return known;
    const added = new Pipeline(client, { areNamed });
    pipelines.set(client, added);
    return added;
  }

  /** Rather than for a session that the host refuses, a statement waits for one that there is. */
  async function connected(): Promise<PoolClient> {
    for (;;) {
      if (pool.ending) throw closed();
      pool.options.max = hosts.refusesSessions && open > 0 ? open : max;
      try {
        return await pool.connect();
      } catch (cause) {
        if (cause instanceof HostChanged || (areReturned && open > 0)) continue;
        // Whatever the reason, TLS and passwords included, nothing has been sent yet.
        throw unavailable(`no connection: ${cause instanceof Error ? cause.message : cause}`, cause);
      }
    }
  }

  return async () => {
    for (;;) {
      const client = await connected();
      const pipeline = pipelineOf(client);
      const isFresh = Date.now() - (idleSince.get(client) ?? Date.now()) <= LONGEST_IDLE;
      const release = () => {
        // A connection given up while its statement runs would hand its late answer to the next one.
        if (pipeline.isBroken) abandon(client);
        idleSince.set(client, Date.now());
        client.release(pipeline.isBroken);
      };
      if (isFresh) return { pipeline, release };
      pipeline.isBroken = true;
      release();
    }
  };
}
