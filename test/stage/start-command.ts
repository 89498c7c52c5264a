import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const COMMANDS = readFileSync(join(import.meta.dirname, '../../commands.sh'), 'utf8');

/** The command by which `npm start` runs the built host, without the installation. */
export const START_COMMAND = /^ *(MALLOC_.* exec node .*)$/m.exec(COMMANDS)?.[1] ?? '';

const WORDS = START_COMMAND.split(' ');

export const START_OPTIONS: readonly string[] = WORDS.filter((word) => word.startsWith('--'));

/** The settings of the C library and of libuv in the command, as `NAME=value`. */
export const START_VARIABLES: readonly string[] = WORDS.filter((word) => /^(?:MALLOC|UV)_/.test(word));
