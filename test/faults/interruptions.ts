import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from '../lab/stage/stage.ts';
import { type TcpProxy, through } from '../stage/proxy.ts';

/** Begins a fault, and resolves with what ends it. */
export type Interruption = (around: {
  readonly postgres: Stage['postgres'];
  /** Between the service and PostgreSQL. */
  readonly proxy: TcpProxy;
}) => Promise<() => unknown>;

/** Faults of a network, by name. */
export const TROUBLES: Readonly<Record<string, (proxy: TcpProxy) => unknown>> = {
  latency: (proxy) => {
    proxy.answersThrough(late(50));
    proxy.cutAll();
  },
  'one byte at a time': (proxy) => {
    proxy.answersThrough(byteByByte(0));
    proxy.requestsThrough(byteByByte(0));
    proxy.cutAll();
  },
  'cut after some bytes': (proxy) => {
    proxy.answersThrough(cutAfter(700));
    proxy.cutAll();
  },
  reset: (proxy) => proxy.reset(),
  close: (proxy) => proxy.close(),
  refuse: (proxy) => proxy.refuse(),
  'accept and hang': (proxy) => proxy.stall(),
};

export const networkInterruptions: Readonly<Record<string, Interruption>> = Object.fromEntries(
  Object.entries(TROUBLES).map(([name, bringAbout]) => [
    `network: ${name}`,
    async ({ proxy }) => {
      await bringAbout(proxy);
      return proxy.pass;
    },
  ]),
);

export const databaseInterruptions = {
  async 'postgres-restarted'({ postgres }) {
    await postgres.shutDown();
    return postgres.start;
  },
  async 'postgres-crashed'({ postgres }) {
    await postgres.kill();
    return postgres.start;
  },
  async 'postgres-frozen'({ postgres }) {
    await postgres.freeze();
    return postgres.thaw;
  },
  async 'postgres-read-only'({ postgres }) {
    // Sessions keep what they began with, as those at a server do that is no longer the primary.
    const undo = await postgres.refuseWrites();
    await postgres.terminate();
    return undo;
  },
} as const satisfies Readonly<Record<string, Interruption>>;

/** Delays every chunk by this many milliseconds. */
const late = (milliseconds: number) => () =>
  through(async (chunk, push) => {
    await sleep(milliseconds);
    push(chunk);
  });

/** Passes one byte at a time, with a pause of this many milliseconds after each. */
const byteByByte = (milliseconds: number) => () =>
  through(async (chunk, push) => {
    for (const byte of chunk) {
      push(Buffer.of(byte));
      await sleep(milliseconds);
    }
  });

/** Passes this many bytes, then resets the connection. */
const cutAfter = (bytes: number) => () => {
  let left = bytes;
  return through(async (chunk, push) => {
    push(chunk.subarray(0, left));
    left -= chunk.length;
    if (left <= 0) throw new Error('cut');
  });
};
