import { maintain } from '../lib/maintenance.ts';
import { readSettings } from '../lib/settings.ts';

// For those who run functions alone, or want it at a time of their own: does it once, and tells by its exit code.
try {
  await maintain(readSettings());
  process.stdout.write('Idempotency keys and changes that are kept no longer are deleted.\n');
} catch (error) {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  process.exitCode = 1;
}
