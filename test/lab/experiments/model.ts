import { refusedWindows } from '../../model/bridge.ts';
import {
  type Configuration,
  FAULTS,
  LARGE,
  PROPERTIES,
  type Property,
  SMALL,
} from '../../model/configurations.ts';
import { ACCEPTED, REFUSED } from '../../model/planted-histories.ts';
import { hasSpin, verify } from '../../model/spin.ts';
import { windowsIn } from '../../model/windows.ts';
import { defineExperiment } from '../experiment.ts';

type Report = (name: string, holds: boolean, result: string) => void;

const CHOICES: Readonly<Record<string, (report: Report) => Promise<void>>> = {
  small: (report) => verifyAll(SMALL, report),
  large: (report) => verifyAll(LARGE, report),
  faults: (report) => verifyAll(FAULTS, report),
  windows: searchWindows,
};

/**
 * Checks the models with Spin. Prints a line for each configuration, planted fault or planted history, and
 * `N passed, N failed`. `test/model/README.md` explains the choices.
 */
export const experiment = defineExperiment({
  promise: 'The models of the feed and of the keys hold, and find planted faults.',
  takes: 'a minute for small, faults and windows each; large an hour or more',
  needs: 'spin and gcc',
  async run({ words: [choice = ''], print, printRow }) {
    const carryOut = CHOICES[choice];
    if (!carryOut) throw new Error(`usage: npm run lab -- model ${Object.keys(CHOICES).join(' | ')}`);
    if (!(await hasSpin())) throw new Error('spin and gcc must be installed: apt-get install spin gcc');
    const counts = { passed: 0, failed: 0 };
    await carryOut((name, holds, result) => {
      counts[holds ? 'passed' : 'failed'] += 1;
      print(`${name.padEnd(60)} ${result}${holds ? '' : '  FAILED'}`);
    });
    printRow(`${counts.passed} passed, ${counts.failed} failed`, '0 failed');
    print(`${counts.passed} passed, ${counts.failed} failed`);
    return counts.failed === 0 && counts.passed > 0;
  },
});

/** Holds the result for each configuration against what is expected: a planted fault, or none. */
async function verifyAll(
  configurations: readonly (Configuration & { readonly foundBy?: Property })[],
  report: Report,
): Promise<void> {
  for (const configuration of configurations) {
    const { states, depth, seconds, megabytes, violated, isComplete } = await verify(configuration);
    const figures = `${states} states, depth ${depth}, ${seconds} s, ${Math.round(megabytes)} MB`;
    const found = violated === undefined ? '' : `, does not hold: ${PROPERTIES[violated]}`;
    const { name, foundBy } = configuration;
    report(name, foundBy === undefined ? isComplete : violated === foundBy, figures + found);
  }
}

async function searchWindows(report: Report): Promise<void> {
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
