import { type ParseArgsConfig, parseArgs } from 'node:util';
import type { Users } from '../users.ts';
import { COMMANDS } from './commands.ts';
import { EXIT, Failure } from './failure.ts';
import { type Columns, parseColumns } from './files/columns.ts';
import { findPlace, type Place } from './place.ts';
import type { Progress } from './progress.ts';
import type { Stop } from './stop.ts';

export type Name = keyof typeof COMMANDS;
type Options<Command extends Name> = (typeof COMMANDS)[Command]['options'];

type InCamelCase<Text> = Text extends `${infer First}-${infer Rest}`
  ? `${First}${Capitalize<InCamelCase<Rest>>}`
  : Text;
type ValueOf<Option> = Option extends { read(given: string): infer Value }
  ? Exclude<Value, undefined> | (Option extends { default: string } ? never : undefined)
  : Option extends { default: boolean }
    ? boolean
    : string | (Option extends { isNeeded: true } ? never : undefined);

/** The options of a command, with its operand. What they mean is in its help. */
export type OptionsOf<Command extends Name> = {
  readonly [Option in keyof Options<Command> as Option extends 'columns' | 'ignore'
    ? never
    : InCamelCase<Option>]: ValueOf<Options<Command>[Option]>;
} & {
  readonly url: string | undefined;
  readonly operand: string;
  readonly columns: Columns;
};

/** A command, with its options. */
export type Arguments<Command extends Name = Name> = {
  [Each in Command]: { readonly name: Each; readonly options: OptionsOf<Each> };
}[Command];

/** The options of a command, and what it works with. */
export type CommandRun<Command extends Name> = {
  readonly users: Users;
  readonly options: OptionsOf<Command>;
  readonly progress: Progress;
  readonly stop: Stop;
};

/** An option as any command has it. */
type Option = {
  readonly type: 'string' | 'boolean';
  readonly value?: string;
  readonly help: string;
  readonly rule?: string;
  readonly read?: (given: string) => unknown;
  readonly isNeeded?: boolean;
  readonly isPath?: boolean;
};

const STANDARD = { url: { type: 'string' }, help: { type: 'boolean', short: 'h' } } as const;

/**
 * The command that the arguments name, with its options, or the text of a help.
 *
 * @throws {Failure} with exit code 2 for wrong arguments
 */
export function readArguments([name, ...args]: readonly string[]): Arguments | string {
  if (name === undefined) throw new Failure(describeAll(), EXIT.wrongUse);
  if (['help', '-h', '--help'].includes(name)) return describeAll();
  if (!isCommand(name)) throw new Failure('There is no such command. See: users --help', EXIT.wrongUse);
  const { help } = parseArgs({ args, options: { help: STANDARD.help }, strict: false }).values;
  if (help === true) return describe(name);
  try {
    return { name, options: parse(name, args) } as Arguments;
  } catch (error) {
    // After its first sentence Node advises how to write an argument that begins with a dash. An argument may be a secret.
    const [fault = ''] = (error as Error).message.split(/\. |\n/);
    const shown = fault.replace(/^(Unexpected argument) .*$/, '$1');
    throw new Failure(`${shown}. See: users ${name} --help`, EXIT.wrongUse);
  }
}

function isCommand(name: string): name is Name {
  return Object.hasOwn(COMMANDS, name);
}

const operandOf = (name: Name) => ({ operand: [], ...COMMANDS[name] }).operand;
const optionsOf = (name: Name) => Object.entries<Option>(COMMANDS[name].options);

function parse(name: Name, args: string[]) {
  const [form, wanted] = operandOf(name);
  const options: ParseArgsConfig['options'] = { ...STANDARD, ...COMMANDS[name].options };
  const { values, positionals } = parseArgs({ args, options, allowPositionals: form !== undefined });
  const [operand = '', ...others] = positionals;
  if (form && (operand === '' || others.length > 0)) throw new Error(`Name ${wanted}`);
  const texts = values as Readonly<Record<string, string>>;
  const paths = optionsOf(name).flatMap(([option, { isPath }]) =>
    isPath ? [[`--${option}`, texts[option]]] : [],
  );
  const file = form?.startsWith('<file') && { '<file>': operand === '-' ? '/dev/stdin' : operand };
  const fault = faultOfPaths({ ...file, ...Object.fromEntries(paths) }) ?? faultOfSync(values);
  if (fault) throw new Error(fault);
  const parsed = optionsOf(name).map(([option, { read, rule, isNeeded }]) => {
    const given = texts[option];
    if (isNeeded && given === undefined) throw new Error(`--${option} is missing`);
    const value = read && given !== undefined ? read(given) : given;
    if (value === undefined && given !== undefined) throw new Error(`--${option} must be ${rule}`);
    return [option.replace(/-(\w)/g, (_, letter) => letter.toUpperCase()), value];
  });
  const { url, columns, ignore } = values as Readonly<Record<string, readonly string[] | undefined>>;
  return { ...Object.fromEntries(parsed), url, operand, columns: parseColumns(columns, ignore) };
}

/** What is wrong with options of `sync` that belong together. */
function faultOfSync({ prefix, by, ...given }: Readonly<Record<string, unknown>>): string | undefined {
  const isDeactivating = given['deactivate-missing'] === true;
  if (isDeactivating && by === 'email') return '--deactivate-missing needs external ids, and not --by email';
  if (prefix !== undefined && !isDeactivating) return '--prefix needs --deactivate-missing';
  return prefix === '' ? '--prefix must not be empty' : undefined;
}

/**
 * What is wrong with the paths of these options: one is empty, or two name one regular file, by links or as a standard stream.
 * A path that leads nowhere is reported when it is opened.
 */
function faultOfPaths(options: Readonly<Record<string, string | undefined>>): string | undefined {
  const streams = { 'standard output': '/dev/fd/1', 'standard error': '/dev/fd/2' };
  const known = new Map<string, { readonly option: string; readonly descriptor: number | undefined }>();
  for (const [option, path] of Object.entries({ ...options, ...streams })) {
    if (path === '') return `${option} must not be empty`;
    const found = path === undefined ? undefined : tryToFind(path);
    if (!found || (found.stats && !found.stats.isFile())) continue;
    const { descriptor, place, stats } = found;
    const key = stats ? `${stats.dev}:${stats.ino}` : place;
    const other = known.get(key);
    // An option may name a stream itself, and both streams may go to one file.
    if (other && !(option in streams && (other.descriptor === descriptor || other.option in streams)))
      return `${other.option} and ${option} must name two files`;
    if (!other) known.set(key, { option, descriptor });
  }
  return undefined;
}

function tryToFind(path: string): Place | undefined {
  try {
    return findPlace(path);
  } catch {
    return undefined;
  }
}

const CONNECTION = `The service, and how to get tokens for it (secrets are not accepted as arguments):
  --url <url>, USERS_URL     base URL of the service
  USERS_TOKEN                a token, or instead of it:
  USERS_TOKEN_URL            token endpoint, for tokens by client credentials
  USERS_CLIENT_ID, USERS_CLIENT_SECRET
  USERS_SCOPE, USERS_AUDIENCE   optional
Without all of them, the service that npm run dev of this clone has started is used.`;

/** What to do after a command was stopped. */
export function adviceFor(name: Name): string {
  return { stopped: 'Run the same command again to continue.', ...COMMANDS[name] }.stopped;
}

/** The text of `--help` of a command. */
function describe(name: Name): string {
  const { about, exits } = { exits: '', ...COMMANDS[name] };
  const needed = optionsOf(name).flatMap(([option, { isNeeded, value }]) =>
    isNeeded ? [`--${option} ${value}`] : [],
  );
  const usage = ['Usage: users', name, ...operandOf(name).slice(0, 1), ...needed, '[options]'].join(' ');
  const rows = optionsOf(name).map(([option, { value = '', help }]) => [`--${option} ${value}`, help]);
  const done = name === 'relay' ? '' : '0 done, ';
  const codes = `Exit codes: ${done}1 failed or interrupted, 2 wrong use${exits}.`;
  return [usage, about, toColumns(rows), CONNECTION, codes].join('\n\n');
}

function describeAll(): string {
  const rows = Object.entries(COMMANDS).map(([name, { about }]) => [
    `${name} ${operandOf(name as Name)[0] ?? ''}`,
    /^.*?(?=\.)/.exec(about)?.[0] ?? '',
  ]);
  return `Usage: users <command> …\n\n${toColumns(rows)}\n\nusers <command> --help describes a command.`;
}

function toColumns(rows: readonly (readonly string[])[]): string {
  const width = Math.max(...rows.map(([first = '']) => first.length));
  return rows.map(([first = '', second]) => `  ${first.padEnd(width)}  ${second}`).join('\n');
}
