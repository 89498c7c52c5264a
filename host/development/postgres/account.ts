import { execFile } from 'node:child_process';
import { stat } from 'node:fs/promises';
import { promisify } from 'node:util';

/** The operating system account that PostgreSQL runs under; without ids it is the current one. */
export interface Account {
  readonly uid?: number;
  readonly gid?: number;
}

const nobody: Account = { uid: 65534, gid: 65534 };

/** Chooses the account for the server whose files are in `folder`, because PostgreSQL refuses to run as root. */
export async function accountFor(folder: string): Promise<Account> {
  if (process.getuid?.() !== 0) return {};
  const owner = await stat(folder).catch(() => undefined);
  return owner && owner.uid !== 0 ? { uid: owner.uid, gid: owner.gid } : nobody;
}

/** Runs a program to its end as `account` and returns its output; rejects with its standard error. */
export async function runAs(account: Account, program: string, options: readonly string[]): Promise<string> {
  // A project folder may be closed to the account, and a program cannot start in a folder that it cannot enter.
  const { stdout } = await promisify(execFile)(program, options, { ...account, cwd: '/' });
  return stdout;
}

/** Whether a program succeeds as `account`. */
export function canRun(...program: Parameters<typeof runAs>): Promise<boolean> {
  return runAs(...program).then(
    () => true,
    () => false,
  );
}
