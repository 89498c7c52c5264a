import { maintain } from '../../lib/cleanup.ts';
import { readSettings } from '../../lib/settings/settings.ts';

// Cleans up once, and reports the result by the exit code: for deployments with functions only, or for times of your
// own.
try {
  await maintain(readSettings());
  process.stdout.write('Expired idempotency keys and changes are deleted.\n');
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
