import type { CpuProfile } from './inspector.ts';
import { NATIVE, originFinder } from './origin.ts';

/** Microseconds of the main thread, idle time left out. */
export type Breakdown = {
  readonly total: number;
  /** From the most to the least. */
  readonly modules: readonly (readonly [module: string, time: number])[];
  readonly functions: readonly (readonly [name: string, time: number])[];
};

/**
 * Adds up what was running at each sample: by module, and by function. V8 does not see the kernel: it works for native
 * code, so that what it used (in microseconds, on this thread) is taken from that.
 */
export function breakdownOf({ nodes, samples, timeDeltas }: CpuProfile, inKernel: number): Breakdown {
  const originOf = originFinder();
  const origins = new Map(nodes.map(({ id, callFrame }) => [id, originOf(callFrame)]));
  const modules = new Map<string, number>();
  const functions = new Map<string, number>();
  let total = 0;
  for (const [index, node] of samples.entries()) {
    const origin = origins.get(node);
    // The time from one sample to the next is that of the first of them.
    const time = timeDeltas[index + 1] ?? 0;
    if (!origin || time < 0) continue;
    total += time;
    modules.set(origin.module, (modules.get(origin.module) ?? 0) + time);
    functions.set(origin.name, (functions.get(origin.name) ?? 0) + time);
  }
  modules.set('kernel', inKernel);
  modules.set(NATIVE, Math.max((modules.get(NATIVE) ?? 0) - inKernel, 0));
  return { total, modules: descending(modules), functions: descending(functions) };
}

function descending(times: ReadonlyMap<string, number>) {
  return [...times].sort(([, a], [, b]) => b - a);
}
