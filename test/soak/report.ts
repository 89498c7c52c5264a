import type { Stage } from '../lab/stage/stage.ts';
import { longestAnswer } from './bring-about.ts';
import { plotOf } from './plot.ts';
import type { startRecorder } from './recorder.ts';
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
    ...ledgers.map((ledger) => `| longest answer | ${longestAnswer(ledger, 0)} |`),
    ...findings.map(
      ({ sentence, seen, holds }) => `| ${sentence} | ${seen || 'yes'}${holds ? '' : ' **(FAILED)**'} |`,
    ),
  ].join('\n');
}

/** The curves of all that was held. */
export function drawn(
  { samples, readings }: Pick<ReturnType<typeof startRecorder>, 'samples' | 'readings'>,
  moments: readonly number[],
  judgedFrom: number,
): string {
  const sampled = (name: 'memory' | 'descriptors' | 'threads') =>
    samples.map((sample) => [sample.hours, sample[name]] as const);
  const read = (name: 'memory' | 'live' | 'compiled' | 'kept' | 'timers' | 'sockets' | 'descriptors') =>
    readings.map((reading) => [reading.hours, reading[name]] as const);
  const sessions = samples.flatMap(({ hours, sessions }) =>
    sessions === undefined ? [] : [[hours, sessions] as const],
  );
  const panels = {
    'memory, in MB': [
      { title: 'resident', points: sampled('memory') },
      { title: 'without garbage', points: read('memory') },
      { title: 'heap without garbage', points: read('live') },
      { title: 'compiled code', points: read('compiled') },
      { title: 'kept by the C library', points: read('kept') },
    ],
    'descriptors, at most and between faults': [
      { title: 'at most', points: sampled('descriptors'), joined: 'most' },
      { title: 'between faults', points: read('descriptors') },
    ],
    'sessions of PostgreSQL': [{ title: 'sessions', points: sessions, joined: 'most' }],
    'timers, sockets and threads between faults': [
      { title: 'timers', points: read('timers') },
      { title: 'sockets', points: read('sockets') },
      { title: 'threads', points: sampled('threads') },
    ],
  } as const;
  return plotOf(panels, moments, judgedFrom);
}
