import { readFileSync } from 'node:fs';

/** Linux counts CPU time in hundredths of a second for programs (USER_HZ), whatever the kernel's own clock. */
const TICKS_PER_S = 100;

/** The CPU time in seconds that a process has used with all its threads. */
export const cpuOf = (processId: number): number => cpuTimes(processId).own;

/** The CPU time in seconds of PostgreSQL: its main process, its children, and the children that have ended. */
export function cpuOfFamily(processId: number): number {
  const { own, ended } = cpuTimes(processId);
  return childrenOf(processId).reduce((sum, child) => sum + usedBy(child), own + ended);
}

/** The processes that a process has started, and that have not ended. */
function childrenOf(processId: number): readonly number[] {
  const children = readFileSync(`/proc/${processId}/task/${processId}/children`, 'utf8').trim();
  return children === '' ? [] : children.split(' ').map(Number);
}

/** 0 for one that has just ended: it counts among its parent's ended children from then on. */
function usedBy(processId: number): number {
  try {
    return cpuOf(processId);
  } catch {
    return 0;
  }
}

/** In seconds: its own, and that of its children that have ended. */
function cpuTimes(processId: number) {
  const stat = readFileSync(`/proc/${processId}/stat`, 'utf8');
  // The name of the program may hold blanks and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  const [user = 0, system = 0, endedUser = 0, endedSystem = 0] = fields.slice(11, 15).map(Number);
  return { own: (user + system) / TICKS_PER_S, ended: (endedUser + endedSystem) / TICKS_PER_S };
}

/** The CPU time in seconds of the whole machine so far, with what a hypervisor took from it. */
export function cpuOfMachine(): number {
  const [line = ''] = readFileSync('/proc/stat', 'utf8').split('\n', 1);
  const [, user, nice, system, , , interrupts, soft, stolen] = line.split(/\s+/).map(Number);
  return (
    ([user, nice, system, interrupts, soft, stolen] as number[]).reduce((sum, n) => sum + n) / TICKS_PER_S
  );
}
