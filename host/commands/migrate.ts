import { runMigrations } from '../../lib/migrations/index.ts';
import { runCommand } from './run-command.ts';

// Runs the pending migrations, for deployments with SVC_POSTGRES_MIGRATE=false.
await runCommand(({ postgres }) => runMigrations(postgres), 'The database is migrated.');
