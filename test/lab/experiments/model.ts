import { runRow } from '../../faults/run-row.ts';
import { refusedWindows } from '../../model/bridge.ts';
import { type Configuration, FAULTS, LARGE, PROPERTIES, SMALL } from '../../model/configurations.ts';
import { ACCEPTED, REFUSED } from '../../model/planted-histories.ts';
import { hasSpin, verify } from '../../model/spin.ts';
import { type FeedHistory, windowsIn } from '../../model/windows.ts';
import { defineExperiment } from '../experiment.ts';

type Lines = {
  report(name: string, holds: boolean, result: string): void;
  print(line: string): void;
};

type Samples = Readonly<Record<string, number>>;

/** Rows of the fault suite whose histories are checked, and the trials of the sample. */
const ROWS = ['model', 'model-under-faults', 'two-instances', 'change-feed'];
const SAMPLE: Samples = { model: 1500, 'change-feed': 4000 };

const CHOICES: Readonly<Record<string, (lines: Lines) => Promise<void>>> = {
  small: (lines) => check(lines, SMALL),
  large: (lines) => check(lines, LARGE),
  faults: findFaults,
  windows: searchWindows,
  histories: (lines) => checkHistories(lines, Object.keys(SAMPLE), SAMPLE),
  'all-histories': (lines) => checkHistories(lines, ROWS),
};

/**
 * Checks the models with Spin, and real histories with the models. Prints a line for each configuration, planted fault
 * or row of the fault suite, and `N passed, N failed`. `test/model/README.md` explains the choices.
 */
export const experiment = defineExperiment({
  name: 'model',
  promise: 'The models of the feed and of the keys hold, find planted faults, and accept real histories.',
  takes: 'a minute for small, faults, windows and histories each; large and all-histories an hour or more',
  needs: 'spin and gcc',
  async run({ words: [choice = ''], print }) {
    const carryOut = CHOICES[choice];
    if (!carryOut) throw new Error(`usage: npm run lab -- model ${Object.keys(CHOICES).join(' | ')}`);
    if (!(await hasSpin())) throw new Error('spin and gcc must be installed: apt-get install spin gcc');
    const counts = { passed: 0, failed: 0 };
    await carryOut({
      print,
      report(name, holds, result) {
        counts[holds ? 'passed' : 'failed'] += 1;
        print(`${name.padEnd(60)} ${result}${holds ? '' : '  FAILED'}`);
      },
    });
    print(`${counts.passed} passed, ${counts.failed} failed`);
    return counts.failed === 0 && counts.passed > 0;
  },
});

async function check({ report }: Lines, configurations: readonly Configuration[]): Promise<void> {
  for (const configuration of configurations) {
    const { states, depth, seconds, megabytes, violated, isComplete } = await verify(configuration);
    const figures = `${states} states, depth ${depth}, ${seconds} s, ${Math.round(megabytes)} MB`;
    const fault = violated === undefined ? '' : `, does not hold: ${nameOf(violated)}`;
    report(configuration.name, isComplete, figures + fault);
  }
}

async function findFaults({ report }: Lines): Promise<void> {
  for (const fault of FAULTS) {
    const { violated, states, depth, seconds } = await verify(fault);
    const found = violated === undefined ? 'not found' : `found: ${nameOf(violated)}`;
    report(
      fault.name,
      violated === fault.foundBy,
      `${states} states, depth ${depth}, ${seconds} s, ${found}`,
    );
  }
}

function nameOf(property: number): string {
  return PROPERTIES[property as keyof typeof PROPERTIES] ?? `property ${property}`;
}

async function searchWindows({ report }: Lines): Promise<void> {
  const histories = Object.entries({ ...ACCEPTED, ...REFUSED }).map(([name, history]) => ({
    name,
    windows: windowsIn(history),
  }));
  const refused = new Set(await refusedWindows(histories.flatMap(({ windows }) => windows)));
  for (const { name, windows } of histories) {
    const isRefused = windows.some((window) => refused.has(window));
    const isViolation = Object.hasOwn(REFUSED, name);
    report(name, isRefused === isViolation, isViolation ? 'must be refused' : 'must be accepted');
  }
}

/** Runs rows of the fault suite, and searches an execution of the model for each window of their histories. */
async function checkHistories(
  { report, print }: Lines,
  names: readonly string[],
  samples: Samples = {},
): Promise<void> {
  const { rows } = await import('../../faults/rows/index.ts');
  for (const name of names) {
    const row = rows.find((one) => one.name === name);
    if (!row) throw new Error(`the fault suite has no row ${name}`);
    const trials = samples[name] ?? row.trials;
    const figures = { changes: 0, windows: 0, reads: 0, milliseconds: 0 };
    const judgeFeed = async (history: FeedHistory) => {
      const begun = performance.now();
      const all = windowsIn(history);
      const refused = await refusedWindows(all);
      figures.changes += history.changes.length;
      figures.windows += all.length;
      figures.reads += all.reduce((sum, { reads }) => sum + reads.length, 0);
      figures.milliseconds += performance.now() - begun;
      return refused.map((window) => `no execution of the model has ${JSON.stringify(window)}`);
    };
    const outcome = await runRow(row, { seed: 1, trials, judgeFeed });
    const { changes, windows, reads, milliseconds } = figures;
    const seconds = (milliseconds / 1000).toFixed(1);
    const holds = outcome.passed && windows > 0;
    report(
      name,
      holds,
      `${changes} changes, ${windows} windows, ${reads} reads, ${seconds} s of ${outcome.seconds} s`,
    );
    for (const fault of outcome.faults) print(`failed: ${name}: ${fault}`);
  }
}
