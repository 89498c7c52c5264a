import { setTimeout as sleep } from 'node:timers/promises';
import type { Stage } from '../lab/stage/stage.ts';
import { type TcpProxy, through } from '../stage/proxy.ts';

/** Begins a fault, and resolves with what ends it. */
export type Interruption = (around: {
  readonly postgres: Stage['postgres'];
  /** Between the service and PostgreSQL. */
  readonly proxy: TcpProxy;
}) => Promise<() => unknown>;

export const TROUBLES: Readonly<Record<string, (proxy: TcpProxy) => unknown>> = {
  latency: (proxy) => {
    proxy.answersThrough(late);
    proxy.cutAll();
  },
  'one byte at a time': (proxy) => {
    proxy.answersThrough(byteByByte);
    proxy.requestsThrough(byteByByte);
    proxy.cutAll();
  },
  'cut after some bytes': (proxy) => {
    proxy.answersThrough(cutOff);
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

/** Delays every chunk by 50 milliseconds. */
const late = () =>
  through(async (chunk, push) => {
    await sleep(50);
    push(chunk);
  });

const byteByByte = () =>
  through(async (chunk, push) => {
    for (const byte of chunk) {
      push(Buffer.of(byte));
      await sleep(0);
    }
  });

/** Passes 700 bytes, then resets the connection. */
function cutOff() {
  let left = 700;
  return through(async (chunk, push) => {
    push(chunk.subarray(0, left));
    left -= chunk.length;
    if (left <= 0) throw new Error('cut');
  });
}
