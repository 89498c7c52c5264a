import { readFileSync } from 'node:fs';

/** What Linux counts the CPU time of a process in: ticks a second. */
const TICKS = 100;

/** What a process has taken so far. */
export function processFigures(processId: number) {
  return {
    /** CPU seconds, user and system. */
    cpuSeconds(): number {
      const [, rest = ''] = readFileSync(`/proc/${processId}/stat`, 'utf8').split(') ');
      const fields = rest.split(' ');
      return (Number(fields[11]) + Number(fields[12])) / TICKS;
    },
    /** The most memory that it has had, in megabytes. */
    peakMemory(): number {
      const status = readFileSync(`/proc/${processId}/status`, 'utf8');
      return Math.round(Number(/VmHWM:\s+(\d+)/.exec(status)?.[1]) / 1024);
    },
  };
}
