import { rows } from '../faults/rows/index.ts';
import { runRow } from '../faults/run-row.ts';
import { refusedWindows } from './bridge.ts';
import { type Configuration, FAULTS, LARGE, PROPERTIES, SMALL } from './configurations.ts';
import { ACCEPTED, REFUSED } from './planted-histories.ts';
import { hasSpin, verify } from './spin.ts';
import { type FeedHistory, windowsIn } from './windows.ts';

/**
 * Checks the models with Spin, and real histories with the models. Prints a line for each configuration, planted fault
 * or row of the fault suite, and `N passed, N failed`. README.md explains the choices.
 */
const CHOICES = { small, large, faults, windows, histories, 'all-histories': allHistories } as const;

/** Rows of the fault suite whose histories are checked, and the trials of the sample. */
const ROWS = ['model', 'model-under-faults', 'two-instances', 'change-feed'] as const;
const SAMPLE = { model: 1500, 'change-feed': 4000 } as const;

const print = (text: string) => process.stdout.write(`${text}\n`);
const counts = { passed: 0, failed: 0 };

const choice = process.argv[2] ?? '';
if (!isChoice(choice)) throw new Error(`usage: node test/model/model.ts ${Object.keys(CHOICES).join(' | ')}`);
if (!(await hasSpin())) throw new Error('spin and gcc must be installed: apt-get install spin gcc');
await CHOICES[choice]();
print(`${counts.passed} passed, ${counts.failed} failed`);
process.exit(counts.failed === 0 && counts.passed > 0 ? 0 : 1);

function isChoice(name: string): name is keyof typeof CHOICES {
  return Object.hasOwn(CHOICES, name);
}

function report(name: string, holds: boolean, result: string): void {
  counts[holds ? 'passed' : 'failed'] += 1;
  print(`${name.padEnd(60)} ${result}${holds ? '' : '  FAILED'}`);
}

function small(): Promise<void> {
  return check(SMALL);
}

function large(): Promise<void> {
  return check(LARGE);
}

async function check(configurations: readonly Configuration[]): Promise<void> {
  for (const configuration of configurations) {
    const { states, depth, seconds, megabytes, violated, isComplete } = await verify(configuration);
    const figures = `${states} states, depth ${depth}, ${seconds} s, ${Math.round(megabytes)} MB`;
    const fault = violated === undefined ? '' : `, does not hold: ${nameOf(violated)}`;
    report(configuration.name, isComplete, figures + fault);
  }
}

async function faults(): Promise<void> {
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

async function windows(): Promise<void> {
  const named = (histories: Readonly<Record<string, FeedHistory>>) =>
    Object.entries(histories).flatMap(([name, history]) =>
      windowsIn(history).map((window) => ({ name, window })),
    );
  const [accepted, refused] = [named(ACCEPTED), named(REFUSED)];
  const found = new Set(await refusedWindows([...accepted, ...refused].map(({ window }) => window)));
  for (const name of Object.keys(ACCEPTED)) {
    report(
      name,
      accepted.every((one) => one.name !== name || !found.has(one.window)),
      'must be accepted',
    );
  }
  for (const name of Object.keys(REFUSED)) {
    report(
      name,
      refused.some((one) => one.name === name && found.has(one.window)),
      'must be refused',
    );
  }
}

function histories(): Promise<void> {
  return checkHistories(SAMPLE);
}

function allHistories(): Promise<void> {
  const all = rows.filter(({ name }) => ROWS.some((row) => row === name));
  return checkHistories(Object.fromEntries(all.map(({ name, trials }) => [name, trials])));
}

/** Runs rows of the fault suite, and searches an execution of the model for each window of their histories. */
async function checkHistories(trialsOf: Readonly<Record<string, number>>): Promise<void> {
  for (const [name, trials] of Object.entries(trialsOf)) {
    const row = rows.find((one) => one.name === name);
    if (!row) throw new Error(`the fault suite has no row ${name}`);
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
