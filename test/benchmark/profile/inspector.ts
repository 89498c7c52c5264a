import { until } from '../../stage/until.ts';

/** Microseconds between two samples: the more of them, the more they cost. */
const INTERVAL = 500;

/** What V8 gives: a tree of functions, and which of them ran at each sample. */
export type CpuProfile = {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: {
      readonly functionName: string;
      readonly url: string;
      readonly lineNumber: number;
      readonly columnNumber: number;
    };
  }[];
  readonly samples: readonly number[];
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
};

/** Connects to the inspector of a Node process, by what that printed, and records what its main thread does. */
export async function connectProfiler(printed: () => string) {
  const socket = new WebSocket(await until('the inspector', () => /ws:\/\/\S+/.exec(printed())?.[0]));
  await new Promise((resolve, reject) => {
    socket.addEventListener('open', resolve);
    socket.addEventListener('error', reject);
  });
  const waiting = new Map<number, (result: unknown) => void>();
  socket.addEventListener('message', ({ data }) => {
    const { id, result } = JSON.parse(data);
    waiting.get(id)?.(result);
    waiting.delete(id);
  });
  let calls = 0;
  const call = (method: string, params = {}) => {
    calls += 1;
    socket.send(JSON.stringify({ id: calls, method, params }));
    return new Promise((resolve) => waiting.set(calls, resolve));
  };
  await call('Profiler.enable');
  await call('Profiler.setSamplingInterval', { interval: INTERVAL });
  return {
    start: () => call('Profiler.start'),
    async stop(): Promise<CpuProfile> {
      const { profile } = (await call('Profiler.stop')) as { profile: CpuProfile };
      return profile;
    },
    close: () => socket.close(),
  };
}
