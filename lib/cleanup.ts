import { setTimeout as sleep } from 'node:timers/promises';
import { expiringChanges } from './changes/expiry.ts';
import { numberingChanges, settlingSequence } from './changes/numbering.ts';
import { expiringKeys } from './idempotency/key-table.ts';
import { Database, type Statements } from './postgres/index.ts';
import type { Settings } from './settings/settings.ts';

/** Milliseconds between two steps, in which PostgreSQL serves other statements. */
const PAUSE = 50;

/**
 * Deletes expired rows in small steps: idempotency keys after 24 hours, changes after their retention. Several
 * instances may do so at the same time.
 */
export function maintaining(statements: Statements, retention: number) {
  const expireKeys = expiringKeys(statements);
  const expireChanges = expiringChanges(statements);
  const numberChanges = numberingChanges(statements);
  const settleSequence = settlingSequence(statements);

  return async (signal?: AbortSignal): Promise<void> => {
    await inSteps(expireKeys, signal);
    // Changes without a position get one first, so that changes are deleted in the order of their positions.
    await inSteps(async () => !(await numberChanges()), signal);
    if (!signal?.aborted) await settleSequence();
    await inSteps(expireChanges(retention), signal);
  };
}

/** Cleans up once, until `signal`, for deployments in which no instance does so by itself. */
export async function maintain(
  { postgres, changesRetention }: Pick<Settings, 'postgres' | 'changesRetention'>,
  signal?: AbortSignal,
): Promise<void> {
  const database = new Database(postgres);
  try {
    await maintaining(database.statements, changesRetention)(signal);
  } finally {
    await database.close(1);
  }
}

async function inSteps(step: () => Promise<boolean>, signal: AbortSignal | undefined): Promise<void> {
  while (!signal?.aborted && (await step())) await sleep(PAUSE, undefined, { signal }).catch(() => {});
}
