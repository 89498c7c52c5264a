import { createCleaning } from '../lib/cleaning.ts';
import { openDatabase } from '../lib/database/database.ts';
import { readSettings } from '../lib/settings.ts';

// For those who run functions alone: deletes once what is kept no longer, and tells by its exit code.
try {
  const { postgres, changesRetention } = readSettings();
  const database = openDatabase(postgres);
  try {
    await createCleaning(database.statements, changesRetention)();
  } finally {
    await database.close(1);
  }
  process.stdout.write('Idempotency keys and changes that are kept no longer are deleted.\n');
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
