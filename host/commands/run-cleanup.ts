import { maintain } from '../../lib/cleanup.ts';
import { runCommand } from './run-command.ts';

// Cleans up, for deployments with functions only, or for times of your own.
await runCommand(maintain, 'Expired idempotency keys and changes are deleted.');
