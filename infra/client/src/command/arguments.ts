import { type ParseArgsConfig, parseArgs } from 'node:util';
import { EXIT, Failure, reasonOf } from './failure.ts';
import { parseColumns } from './files/columns.ts';
import { FORMATS } from './files/format.ts';
import { HELP, type Name } from './help.ts';
import { findPlace, type Place } from './place.ts';
import { USER_KEYS } from './user-keys.ts';

const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;
const help = { ...flag, short: 'h' } as const;

/**
 * The command that the arguments name, with its options.
 *
 * @throws {Failure} with exit code 2 for wrong arguments
 */
export function readArguments([name, ...args]: readonly string[]) {
  if (name !== undefined && Object.hasOwn(HELP, name) && isHelp(args))
    return { name: 'help' as const, text: HELP[name as Name] };
  switch (name) {
    case 'import': {
      const options = { rejected: text, existing: text, 'allow-empty': flag, ...OF_FILES } as const;
      const given = parse(name, args, options, 'Name one file, or - for standard input');
      const { url, rejected, existing, 'allow-empty': allowEmpty } = given;
      return { name, url, ...readFileOptions(name, given), rejected, existing, allowEmpty };
    }
    case 'diff': {
      const options = { subset: flag, 'allow-empty': flag, by: text, ...OF_FILES } as const;
      const { url, subset, ...given } = parse(name, args, options, 'Name one file');
      const by = oneOf(name, 'by', USER_KEYS, given.by);
      return { name, url, ...readFileOptions(name, given), by, subset, allowEmpty: given['allow-empty'] };
    }
    case 'sync': {
      const flags = { adopt: flag, reactivate: flag, 'deactivate-missing': flag, 'dry-run': flag } as const;
      const texts = { by: text, prefix: text, 'max-deactivated': text, plan: text, rejected: text } as const;
      const given = parse(name, args, { ...flags, ...texts, ...OF_FILES }, 'Name one file');
      const { url, adopt, reactivate, prefix, plan, rejected, 'dry-run': dryRun } = given;
      const by = oneOf(name, 'by', ['external_id', 'email'], given.by) ?? 'external_id';
      const { 'deactivate-missing': deactivateMissing, 'max-deactivated': maxDeactivated = '5%' } = given;
      if (deactivateMissing && by === 'email')
        throw wrongUse(name, '--deactivate-missing needs external ids, and not --by email');
      if (prefix !== undefined && !deactivateMissing)
        throw wrongUse(name, '--prefix needs --deactivate-missing');
      if (prefix === '') throw wrongUse(name, '--prefix must not be empty');
      if (!/^(?:\d+|(?:100(?:\.0+)?|\d{1,2}(?:\.\d+)?)%)$/.test(maxDeactivated))
        throw wrongUse(name, '--max-deactivated must be a number, or a percentage from 0% to 100%');
      const limits = { deactivateMissing, prefix: prefix ?? '', maxDeactivated };
      const outputs = { dryRun, plan, rejected };
      return { name, url, ...readFileOptions(name, given), by, adopt, reactivate, ...limits, ...outputs };
    }
    case 'export': {
      const { url, out, cursor } = parse(name, args, { out: text, cursor: text });
      return { name, url, out, cursor };
    }
    case 'follow': {
      const options = { cursor: text, once: flag, wait: text } as const;
      const { url, cursor, once, wait } = parse(name, args, options);
      if (cursor === undefined) throw wrongUse(name, '--cursor is missing');
      return { name, url, cursor, once, wait: parseWait(name, wait) };
    }
    case 'get': {
      const { url, operand, json, by } = parse(name, args, { by: text, json: flag }, 'Name one user');
      return { name, url, text: operand, by: oneOf(name, 'by', USER_KEYS, by), json };
    }
    case 'changes': {
      const { url, operand: id, json } = parse(name, args, { json: flag }, 'Name the id of one user');
      return { name, url, id, json };
    }
    case 'relay': {
      const files = { cursor: text, lock: text, 'skip-refused': text } as const;
      const options = {
        ...files,
        from: text,
        to: text,
        parallel: text,
        wait: text,
        'with-user': flag,
        'allow-http': flag,
      };
      const { url, cursor, lock, to, parallel = '1', ...given } = parse(name, args, options);
      const wait = parseWait(name, given.wait);
      const from = oneOf(name, 'from', ['now', 'oldest'], given.from);
      const { 'with-user': withUser, 'allow-http': allowHttp, 'skip-refused': skipRefused } = given;
      if (cursor === undefined) throw wrongUse(name, '--cursor is missing');
      if (!/^([1-9]|[12]\d|3[0-2])$/.test(parallel)) throw wrongUse(name, '--parallel must be from 1 to 32');
      return {
        name,
        url,
        cursor,
        lock,
        from,
        to,
        parallel: Number(parallel),
        wait,
        withUser,
        allowHttp,
        skipRefused,
      };
    }
    case 'help':
    case '-h':
    case '--help':
      return { name: 'help' as const, text: HELP.users };
    case undefined:
      throw new Failure(HELP.users, EXIT.wrongUse);
    default:
      throw new Failure('There is no such command. See: users --help', EXIT.wrongUse);
  }
}

/** The options of a command. What they mean is in its help. */
export type OptionsOf<Command> = Readonly<Extract<ReturnType<typeof readArguments>, { name: Command }>>;

/** The options of a command that reads a file of users. */
const OF_FILES = {
  format: text,
  encoding: text,
  columns: { ...text, multiple: true },
  ignore: { ...text, multiple: true },
} as const;

type GivenOfFiles = {
  readonly operand: string;
  readonly [name: string]: unknown;
  readonly format?: string | undefined;
  readonly encoding?: string | undefined;
  readonly columns?: readonly string[] | undefined;
  readonly ignore?: readonly string[] | undefined;
};

function readFileOptions(name: Name, { operand: file, encoding, ...given }: GivenOfFiles) {
  const format = oneOf(name, 'format', FORMATS, given.format);
  try {
    new TextDecoder(encoding, { fatal: true });
    return { file, format, encoding, columns: parseColumns(given.columns, given.ignore) };
  } catch (error) {
    const isLabel = error instanceof RangeError;
    throw wrongUse(
      name,
      isLabel ? '--encoding must name an encoding, such as windows-1252' : reasonOf(error),
    );
  }
}

/** The value of an option that has one of these values. */
function oneOf<const Value extends string>(
  name: Name,
  option: string,
  values: readonly Value[],
  given: string | undefined,
): Value | undefined {
  const value = values.find((one) => one === given);
  if (value !== given) throw wrongUse(name, `--${option} must be ${values.join(' or ')}`);
  return value;
}

/** The options that name files. */
const PATHS = ['rejected', 'existing', 'out', 'cursor', 'skip-refused', 'lock', 'plan'];

function isHelp(args: readonly string[]): boolean {
  return parseArgs({ args: [...args], options: { help }, strict: false }).values.help === true;
}

/** The options, and the operand of a command that has one. `missing` is the message without exactly one operand. */
function parse<const Options extends NonNullable<ParseArgsConfig['options']>>(
  name: Name,
  args: readonly string[],
  own: Options,
  missing?: string,
) {
  const options = { url: text, help, ...own };
  try {
    const allowPositionals = missing !== undefined;
    const { values, positionals } = parseArgs({ args: [...args], options, allowPositionals });
    const [operand = '', ...others] = positionals;
    if (missing && (operand === '' || others.length > 0)) throw new Error(missing);
    const paths = PATHS.map((option) => [`--${option}`, (values as Record<string, string>)[option]]);
    const file = missing?.includes('file') && (operand === '-' ? '/dev/stdin' : operand);
    const fault = faultOfPaths({ ...(file && { '<file>': file }), ...Object.fromEntries(paths) });
    if (fault) throw new Error(fault);
    return { ...values, operand };
  } catch (error) {
    // After its first sentence Node advises how to write an argument that begins with a dash. An argument may be a secret.
    const [fault = ''] = (error as Error).message.split(/\. |\n/);
    throw wrongUse(name, fault.replace(/^(Unexpected argument) .*$/, '$1'));
  }
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

/** In seconds: how long a request waits for changes. */
function parseWait(name: Name, wait = '15'): number {
  if (!/^([1-9]|1\d|20)$/.test(wait)) throw wrongUse(name, '--wait must be from 1 to 20');
  return Number(wait);
}

function wrongUse(name: Name, fault: string): Failure {
  return new Failure(`${fault}. See: users ${name} --help`, EXIT.wrongUse);
}
