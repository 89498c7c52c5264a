import { sendTo } from '../stage/raw-request.ts';

/** How long the probes took, and how many were not answered 200; in milliseconds. */
export type ProbeOutcome = Awaited<ReturnType<ReturnType<typeof startProbes>['stop']>>;

const PERIOD_MS = 100;

/** Asks both probes again and again, each time over a new connection, as an orchestrator does. */
export function startProbes(url: string) {
  const longest = { '/health': 0, '/ready': 0 };
  let asked = 0;
  let failed = 0;
  const pending = new Set<Promise<void>>();

  async function probe(path: keyof typeof longest): Promise<void> {
    asked += 1;
    const begun = performance.now();
    const request = { method: 'GET', target: path, fields: [], body: Buffer.alloc(0) };
    const answer = await sendTo(url, request).catch(() => undefined);
    if (answer?.status !== 200) failed += 1;
    longest[path] = Math.max(longest[path], Math.round(performance.now() - begun));
  }

  const timer = setInterval(() => {
    for (const path of ['/health', '/ready'] as const) {
      const asking = probe(path).finally(() => pending.delete(asking));
      pending.add(asking);
    }
  }, PERIOD_MS);

  return {
    async stop() {
      clearInterval(timer);
      await Promise.all(pending);
      return { asked, failed, longestHealth: longest['/health'], longestReady: longest['/ready'] };
    },
  };
}
