import { setTimeout as sleep } from 'node:timers/promises';
import { percentile } from '../meters/percentile.ts';
import { Generator } from './generator.ts';
import { USERS, wireOf } from './wire.ts';

const CALLERS = 8;

/** Milliseconds after which a request without a response is lost. */
const PATIENCE = 30_000;

type Service = { readonly url: string; readonly token: () => Promise<string> };

/** Eight callers read a list of one user again and again, for so many milliseconds. Between two reads a caller waits for `rest`. */
export async function readSteadily(
  { url, token }: Service,
  { lasts, rest }: { readonly lasts: number; readonly rest?: number },
) {
  const wire = wireOf({ method: 'GET', target: `${USERS}?limit=1`, token: await token() });
  const latencies: number[] = [];
  let ok = 0;
  const generator = new Generator({
    ...{ port: Number(new URL(url).port), connections: CALLERS, rest, patience: PATIENCE },
    nextRequest: () => wire,
    onResponse(status, from, to) {
      if (status === 200) ok += 1;
      latencies.push(to - from);
    },
  });
  await generator.start();
  await sleep(lasts);
  await generator.stop();
  return {
    sent: generator.counts.sent,
    ok,
    /** In milliseconds. */
    p99: percentile(latencies, 0.99),
  };
}
