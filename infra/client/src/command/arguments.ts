import { parseArgs } from 'node:util';
import type { DiffOptions } from './diff.ts';
import type { ExportOptions } from './export.ts';
import { EXIT, Failure } from './failure.ts';
import type { FollowOptions } from './follow.ts';
import { HELP, type Name } from './help.ts';
import type { ImportOptions } from './import.ts';

/** A command with its options. */
export type Command =
  | { readonly name: 'help'; readonly text: string }
  | (Connected & ImportOptions & { readonly name: 'import' })
  | (Connected & ExportOptions & { readonly name: 'export' })
  | (Connected & FollowOptions & { readonly name: 'follow' })
  | (Connected & DiffOptions & { readonly name: 'diff' });

/** The base URL of the service, if the arguments name it. */
type Connected = { readonly url: string | undefined };

const text = { type: 'string' } as const;
const flag = { type: 'boolean', default: false } as const;
const common = { url: text, help: { ...flag, short: 'h' } } as const;

/**
 * The command that the arguments name.
 *
 * @throws {Failure} with exit code 2 for wrong arguments
 */
export function readArguments([name, ...given]: readonly string[]): Command {
  const args = [...given];
  switch (name) {
    case 'import': {
      const options = { ...common, rejected: text, existing: text, 'allow-empty': flag } as const;
      const { values, positionals } = attempt(name, () =>
        parseArgs({ args, options, allowPositionals: true }),
      );
      const [file, ...others] = positionals;
      const { url, rejected, existing, 'allow-empty': allowEmpty, help } = values;
      if (help) return helpFor(name);
      if (file === undefined || others.length > 0)
        throw wrongUse(name, 'Name one file, or - for standard input');
      if (rejected !== undefined && rejected === existing)
        throw wrongUse(name, '--rejected and --existing must name two files');
      return { name, url, file, rejected, existing, allowEmpty };
    }
    case 'diff': {
      const options = { ...common, subset: flag, 'allow-empty': flag } as const;
      const { values, positionals } = attempt(name, () =>
        parseArgs({ args, options, allowPositionals: true }),
      );
      const [file, ...others] = positionals;
      const { url, subset, 'allow-empty': allowEmpty, help } = values;
      if (help) return helpFor(name);
      if (file === undefined || others.length > 0) throw wrongUse(name, 'Name one file');
      return { name, url, file, subset, allowEmpty };
    }
    case 'export': {
      const parse = () => parseArgs({ args, options: { ...common, out: text, cursor: text } });
      const { url, out, cursor, help } = attempt(name, parse).values;
      if (help) return helpFor(name);
      if (out !== undefined && out === cursor) throw wrongUse(name, '--out and --cursor must name two files');
      return { name, url, out, cursor };
    }
    case 'follow': {
      const parse = () => parseArgs({ args, options: { ...common, cursor: text, once: flag } });
      const { url, cursor, once, help } = attempt(name, parse).values;
      if (help) return helpFor(name);
      if (cursor === undefined) throw wrongUse(name, '--cursor is missing');
      return { name, url, cursor, once };
    }
    case 'help':
    case '-h':
    case '--help':
      return { name: 'help', text: HELP.users };
    case undefined:
      throw new Failure(HELP.users, EXIT.wrongUse);
    default:
      throw new Failure('There is no such command. See: users --help', EXIT.wrongUse);
  }
}

function attempt<Parsed>(name: Name, parse: () => Parsed): Parsed {
  try {
    return parse();
  } catch (error) {
    // After its first sentence Node advises how to write an argument that begins with a dash.
    throw wrongUse(name, (error as Error).message.split(/\. |\n/)[0] ?? '');
  }
}

function wrongUse(name: Name, fault: string): Failure {
  return new Failure(`${fault}. See: users ${name} --help`, EXIT.wrongUse);
}

function helpFor(name: Name): Command {
  return { name: 'help', text: HELP[name] };
}
