import type { Stage } from '../lab/stage/stage.ts';
import { longestResponse } from './bring-about.ts';
import type { Finding } from './verdict.ts';

/** The closing table, in Markdown. */
export function tableOf({ ledgers, figures }: Stage, findings: readonly Finding[], faults: number): string {
  const entries = ledgers.flatMap((ledger) => ledger.entries);
  const acknowledged = ledgers.flatMap((ledger) => ledger.acknowledged).length;
  const refused = JSON.stringify(ledgers[0]?.refusedByStatus());
  return [
    '| | |\n| --- | --- |',
    `| faults | ${faults} |`,
    `| requests, of which were acknowledged writes | ${entries.length}, ${acknowledged} |`,
    `| answers that were no success, by status | ${refused} |`,
    `| creates whose outcome was not known, settled by their key | ${figures.settled} |`,
    ...ledgers.map((ledger) => `| longest answer | ${longestResponse(ledger, 0)} |`),
    ...findings.map(
      ({ sentence, seen, holds }) => `| ${sentence} | ${seen || 'yes'}${holds ? '' : ' **(FAILED)**'} |`,
    ),
  ].join('\n');
}
