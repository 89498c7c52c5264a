import { readFileSync } from 'node:fs';

/** The resident memory of a process, in megabytes. */
export function residentMemory(processId: number): number {
  return memoryOf(processId, /^VmRSS:\s+(\d+) kB/m);
}

/** The most resident memory that a process has had, in megabytes. */
export function mostMemory(processId: number): number {
  return memoryOf(processId, /^VmHWM:\s+(\d+) kB/m);
}

function memoryOf(processId: number, line: RegExp): number {
  return Number(line.exec(readFileSync(`/proc/${processId}/status`, 'utf8'))?.[1]) / 1024;
}
