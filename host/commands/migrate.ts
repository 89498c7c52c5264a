import { runMigrations } from '../../lib/migrations/index.ts';
import { createEventLog } from '../../lib/observability/event-log.ts';
import { LineWriter } from '../../lib/observability/line-writer.ts';
import { runCommand } from './run-command.ts';

const STANDARD_ERROR = 2;

// Runs the pending migrations, for deployments with SVC_POSTGRES_MIGRATE=false.
await runCommand((settings) => {
  const log = createEventLog(settings, new LineWriter(STANDARD_ERROR).write);
  return runMigrations(settings.postgres, undefined, log);
}, 'The database is migrated.');
