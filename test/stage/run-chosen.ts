import { execve } from 'node:process';

/** The meaning of a name after `npm run suite --` or `npm run lab --`. */
export type Choice = {
  /** A sentence. */
  readonly proves: string;
  /** Requirements beyond Node 24 and PostgreSQL, which the project installs. */
  readonly needs?: string;
  /** How long it takes on two cores. */
  readonly takes: string;
  /** Carries it out, with the words after the name. */
  run(words: readonly string[]): unknown;
};

/** Carries out the choice that the first word of the command line names. Without such a word, lists what there is. */
export async function runChosen(script: string, choices: Readonly<Record<string, Choice>>): Promise<void> {
  const [name, ...words] = process.argv.slice(2);
  if (name !== undefined && Object.hasOwn(choices, name)) return void (await choices[name]?.run(words));
  const print = (text: string) => (name === undefined ? process.stdout : process.stderr).write(`${text}\n`);
  print(`${name === undefined ? '' : `There is no ${name}. `}npm run ${script} -- <name>\n`);
  for (const [each, { proves, needs = 'nothing else', takes }] of Object.entries(choices)) {
    print(`${each.padEnd(13)}${proves}\n${' '.repeat(13)}Takes ${takes}. Needs ${needs}.`);
  }
  if (name !== undefined) process.exitCode = 1;
}

/** Replaces this process by a command for `sh`, followed by these words, so that signals reach the command. */
export function become(command: string, words: readonly string[]): never {
  execve?.('/bin/sh', ['sh', '-c', `${command} "$@"`, 'sh', ...words], process.env);
  throw new Error('this system cannot replace a process');
}
