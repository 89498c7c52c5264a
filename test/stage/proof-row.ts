import { spawnSync } from 'node:child_process';

/** A row of the table in test/README.md: the command that runs, its figure, the goal, and the commit. */
export function proofRow(figure: string, goal: string): string {
  const words = ['describe', '--always', '--abbrev=8', '--exclude=*', '--dirty'];
  // Without git there is no output, and outside of a repository an empty one.
  const commit = spawnSync('git', words, { encoding: 'utf8' }).stdout?.trim() || 'none';
  return `| \`${process.env.PROOF_COMMAND}\` | ${figure} | ${goal} | ${commit} |`;
}
