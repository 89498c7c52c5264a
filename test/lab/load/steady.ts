import { setTimeout as sleep } from 'node:timers/promises';
import { Ledger } from '../ledger/ledger.ts';
import { percentile } from '../meters/percentile.ts';
import { type CallerOptions, createCaller } from './caller.ts';

const CALLERS = 8;

/** Eight callers read a list of one user again and again, for so many milliseconds. Between two reads a caller waits for `rest`. */
export async function readSteadily(
  { url, token }: Pick<CallerOptions, 'url' | 'token'>,
  { lasts, rest }: { readonly lasts: number; readonly rest?: number },
) {
  const ledger = new Ledger();
  const caller = createCaller({ url, token, ledger, connections: CALLERS });
  const end = performance.now() + lasts;
  const read = async () => {
    while (performance.now() < end) {
      await caller.read('?limit=1');
      if (rest !== undefined) await sleep(rest);
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, read));
  caller.close();
  const { entries } = ledger;
  return {
    sent: entries.length,
    ok: entries.filter(({ status }) => status === 200).length,
    /** In milliseconds. */
    p99: percentile(
      entries.map(({ sent, answered }) => answered - sent),
      0.99,
    ),
  };
}
