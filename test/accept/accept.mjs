// npm run accept -- <url>: black-box checks of a running deployment. See README.md beside this file.
import { optionsOf, USAGE, UsageError } from './options.mjs';
import { createReport } from './report.mjs';
import { run } from './run.mjs';

try {
  const options = optionsOf(process.argv.slice(2), process.env);
  const interrupted = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => interrupted.abort());
  const report = createReport((text) => process.stdout.write(text));
  process.exitCode = await run({ ...options, interrupted: interrupted.signal }, report);
} catch (error) {
  if (!(error instanceof UsageError)) throw error;
  process.stderr.write(`${error.message}\n\n${USAGE}\n`);
  process.exitCode = 2;
}
