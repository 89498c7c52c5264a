import { readMessage } from '../../lib/observability/redaction.ts';
import { readSettings, type Settings } from '../../lib/settings/settings.ts';

/** Runs a command once with the settings of the environment, and reports its result as a line and by the exit code. */
export async function runCommand(run: (settings: Settings) => Promise<void>, success: string): Promise<void> {
  try {
    await run(readSettings());
    process.stdout.write(`${success}\n`);
  } catch (error) {
    process.stderr.write(`${readMessage(error)}\n`);
    process.exitCode = 1;
  }
}
