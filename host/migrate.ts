import { runMigrations } from '../lib/database/migrations/run-migrations.ts';
import { readSettings } from '../lib/settings.ts';

// For those who switch SVC_POSTGRES_MIGRATE off: runs the pending migrations once, and tells by its exit code.
try {
  await runMigrations(readSettings().postgres);
  process.stdout.write('The database is migrated.\n');
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
