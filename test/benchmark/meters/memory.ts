import { readFileSync } from 'node:fs';

/** The resident memory of a process, in megabytes. */
export function residentMemory(processId: number): number {
  const status = readFileSync(`/proc/${processId}/status`, 'utf8');
  return Number(/^VmRSS:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}
