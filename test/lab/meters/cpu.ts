import { readFileSync } from 'node:fs';

/** Linux counts CPU time in hundredths of a second for programs (USER_HZ), whatever the kernel's own clock. */
const TICKS_PER_S = 100;

/** CPU time used so far, in seconds. */
export type CpuTime = { readonly user: number; readonly system: number };

/** Both together. */
export const totalOf = ({ user, system }: CpuTime): number => user + system;

/** The CPU time of a process and all its threads. */
export function cpuOf(processId: number): CpuTime {
  const [, , user, system] = ticksOf(processId);
  return { user: user / TICKS_PER_S, system: system / TICKS_PER_S };
}

/** The CPU time in seconds of PostgreSQL: its main process, its children, and the children that have ended. */
export function cpuOfFamily(processId: number): number {
  const [endedUser, endedSystem, user, system] = ticksOf(processId);
  const ofChildren = childrenOf(processId).map(usedBy);
  return (
    (endedUser + endedSystem + user + system) / TICKS_PER_S + ofChildren.reduce((sum, used) => sum + used, 0)
  );
}

/** The processes that a process has started, and that have not ended. */
function childrenOf(processId: number): readonly number[] {
  const children = readFileSync(`/proc/${processId}/task/${processId}/children`, 'utf8').trim();
  return children === '' ? [] : children.split(' ').map(Number);
}

/** 0 for one that has just ended: it counts among its parent's ended children from then on. */
function usedBy(processId: number): number {
  try {
    return totalOf(cpuOf(processId));
  } catch {
    return 0;
  }
}

/** Those of its ended children first, then its own; user and system. */
function ticksOf(processId: number): [number, number, number, number] {
  const stat = readFileSync(`/proc/${processId}/stat`, 'utf8');
  // The name of the program may hold blanks and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return [Number(fields[13]), Number(fields[14]), Number(fields[11]), Number(fields[12])];
}

/** The CPU time in seconds of the whole machine so far, with what a hypervisor took from it. */
export function cpuOfMachine(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const [, user, nice, system, , , interrupts, soft, stolen] = line.split(/\s+/).map(Number);
  return (
    ([user, nice, system, interrupts, soft, stolen] as number[]).reduce((sum, n) => sum + n) / TICKS_PER_S
  );
}
