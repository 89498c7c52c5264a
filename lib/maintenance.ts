import { createCleaning } from './cleaning.ts';
import { openDatabase } from './database/database.ts';
import type { Settings } from './settings.ts';

/** Deletes once what is kept no longer, until `signal`; for where no instance runs that does so by itself. */
export async function maintain(
  { postgres, changesRetention }: Pick<Settings, 'postgres' | 'changesRetention'>,
  signal?: AbortSignal,
): Promise<void> {
  const database = openDatabase(postgres);
  try {
    await createCleaning(database.statements, changesRetention)(signal);
  } finally {
    await database.close(1);
  }
}
