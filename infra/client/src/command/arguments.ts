import { type ParseArgsConfig, parseArgs } from 'node:util';
import { EXIT, Failure } from './failure.ts';
import { HELP, type Name } from './help.ts';
import { USER_KEYS } from './look-up.ts';
import { faultOfPaths } from './place.ts';

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
      const options = { rejected: text, existing: text, 'allow-empty': flag } as const;
      const given = parse(name, args, options, 'Name one file, or - for standard input');
      const { url, operand: file, rejected, existing, 'allow-empty': allowEmpty } = given;
      return { name, url, file, rejected, existing, allowEmpty };
    }
    case 'diff': {
      const options = { subset: flag, 'allow-empty': flag } as const;
      const { url, operand: file, subset, ...given } = parse(name, args, options, 'Name one file');
      return { name, url, file, subset, allowEmpty: given['allow-empty'] };
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
      const key = USER_KEYS.find((one) => one === by);
      if (key !== by) throw wrongUse(name, `--by must be ${USER_KEYS.join(' or ')}`);
      return { name, url, text: operand, by: key, json };
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
      const from = (['now', 'oldest'] as const).find((place) => place === given.from);
      const { 'with-user': withUser, 'allow-http': allowHttp, 'skip-refused': skipRefused } = given;
      if (cursor === undefined) throw wrongUse(name, '--cursor is missing');
      if (from !== given.from) throw wrongUse(name, '--from must be now or oldest');
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

/** In seconds: how long a request waits for changes. */
function parseWait(name: Name, wait = '15'): number {
  if (!/^([1-9]|1\d|20)$/.test(wait)) throw wrongUse(name, '--wait must be from 1 to 20');
  return Number(wait);
}

function wrongUse(name: Name, fault: string): Failure {
  return new Failure(`${fault}. See: users ${name} --help`, EXIT.wrongUse);
}
