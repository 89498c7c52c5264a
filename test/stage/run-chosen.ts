import { execve } from 'node:process';

/** The meaning of a name after `npm run suite --` or `npm run lab --`. */
export type Choice = {
  /** A sentence. */
  readonly proves: string;
  /** Requirements beyond Node 24 and PostgreSQL, which the project installs. */
  readonly needs?: string;
  /** How long it takes on two cores. */
  readonly takes: string;
  /** A command for `sh`. The words after the name follow it. */
  readonly command: string;
};

/**
 * Replaces this process by the command that the first argument names, so that signals reach it. Without an argument,
 * lists all names.
 */
export function runChosen(script: string, choices: Readonly<Record<string, Choice>>): void {
  const [name, ...words] = process.argv.slice(2);
  const chosen = name !== undefined && Object.hasOwn(choices, name) && choices[name];
  if (chosen && execve)
    execve('/bin/sh', ['sh', '-c', `${chosen.command} "$@"`, 'sh', ...words], process.env);
  const print = (text: string) => (name === undefined ? process.stdout : process.stderr).write(`${text}\n`);
  print(`${name === undefined ? '' : `There is no ${name}. `}npm run ${script} -- <name>\n`);
  for (const [each, { proves, needs = 'nothing else', takes }] of Object.entries(choices)) {
    print(`${each.padEnd(13)}${proves}\n${' '.repeat(13)}Takes ${takes}. Needs ${needs}.`);
  }
  if (name !== undefined) process.exitCode = 1;
}
