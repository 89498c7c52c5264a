import { runMigrations } from '../../lib/migrations/index.ts';
import { readSettings } from '../../lib/settings/settings.ts';

// Runs the pending migrations once, and reports the result by the exit code: for deployments with
// SVC_POSTGRES_MIGRATE=false.
try {
  await runMigrations(readSettings().postgres);
  process.stdout.write('The database is migrated.\n');
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
