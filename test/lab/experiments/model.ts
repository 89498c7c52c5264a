import { refusedWindows } from '../../model/bridge.ts';
import { type Configuration, FAULTS, LARGE, PROPERTIES, SMALL } from '../../model/configurations.ts';
import { ACCEPTED, REFUSED } from '../../model/planted-histories.ts';
import { hasSpin, verify } from '../../model/spin.ts';
import { windowsIn } from '../../model/windows.ts';
import { defineExperiment } from '../experiment.ts';

type Lines = {
  report(name: string, holds: boolean, result: string): void;
  print(line: string): void;
};

const CHOICES: Readonly<Record<string, (lines: Lines) => Promise<void>>> = {
  small: (lines) => check(lines, SMALL),
  large: (lines) => check(lines, LARGE),
  faults: findFaults,
  windows: searchWindows,
};

/**
 * Checks the models with Spin. Prints a line for each configuration, planted fault or planted history, and
 * `N passed, N failed`. `test/model/README.md` explains the choices.
 */
export const experiment = defineExperiment({
  name: 'model',
  promise: 'The models of the feed and of the keys hold, and find planted faults.',
  takes: 'a minute for small, faults and windows each; large an hour or more',
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
