let tasks: (() => void)[] = [];

/** Runs a task when all bytes of this pass of the event loop have been read. A task that is added then runs in it, too. */
export function atEndOfPass(task: () => void): void {
  tasks.push(task);
  if (tasks.length === 1) setImmediate(runAll);
}

function runAll(): void {
  for (const task of tasks) task();
  tasks = [];
}
