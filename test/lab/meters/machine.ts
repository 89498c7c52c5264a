import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';

export function machine() {
  return {
    date: new Date().toISOString(),
    processor: cpus()[0]?.model.trim() ?? 'unknown',
    cores: availableParallelism(),
    memoryInGigabytes: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    node: process.version,
    loadBefore: loadavg().map((load) => Number(load.toFixed(2))),
  };
}
