import { promisify } from 'node:util';
import { builtHost } from '../stage/build.ts';
import type { Order, Report } from './run-apart.ts';
import { abandonRow, type Row, runRow } from './run-row.ts';

/** The process of one row: runs it, sends the outcome, and ends. An uncaught error is the fault of the row. */
const order: Order = JSON.parse(process.argv[2] ?? '');
const send = promisify((report: Report, sent: (error: Error | null) => void) => process.send?.(report, sent));

async function end(report?: Report): Promise<never> {
  if (report) await send(report);
  process.exit();
}

process.on('uncaughtException', (error) => {
  const fault = `not caught: ${error instanceof Error ? error.stack : error}`;
  void abandonRow().finally(() => end({ fault }));
});
// The parent process has ended, or does not need the outcome any more.
for (const event of ['SIGTERM', 'disconnect'] as const) {
  process.once(event, () => void abandonRow().finally(end));
}

const { rows }: { rows: readonly Row[] } = await import(order.rows);
// Before the folder for temporary files changes: the rows share the build.
await builtHost();
process.env.TMPDIR = order.folder;
const row = rows.find(({ name }) => name === order.name);
if (!row) throw new Error(`there is no row ${order.name}`);
await end({ outcome: await runRow(row, { ...order, searchesModel: row.searchesModel }) });
