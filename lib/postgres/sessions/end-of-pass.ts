let tasks: (() => void)[] = [];

/**
 * Runs a task at the end of this pass of the event loop, when everything that arrived in it has been read. A task that is
 * added there runs in the same pass: a batch is written in the pass that ends it. ../README.md has what this buys.
 */
export function atEndOfPass(task: () => void): void {
  tasks.push(task);
  if (tasks.length === 1) setImmediate(runAll);
}

function runAll(): void {
  for (const task of tasks) task();
  tasks = [];
}
