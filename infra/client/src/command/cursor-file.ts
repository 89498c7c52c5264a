import { readFileSync, statSync } from 'node:fs';
import { EXIT, type ExitCode, Failure, reasonOf } from './failure.ts';

/** In characters. */
export const MAX_CURSOR_LENGTH = 1000;

/** The cursor that a file has. */
export function readCursor(path: string): string {
  let text: string;
  try {
    // Reading from a pipe might wait for ever.
    if (!statSync(path).isFile()) throw new Failure('it is not a file');
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new Failure(`${path} cannot be read: ${reasonOf(error)}. ${HOW_TO_BEGIN}`, EXIT.wrongUse);
  }
  if (text === '') throw new Failure(`${path} is empty. ${HOW_TO_BEGIN}`, EXIT.wrongUse);
  // The service takes these two words instead of a cursor.
  if (!/^(?!(?:now|oldest)$)[\x21-\x7e]+$/.test(text) || text.length > MAX_CURSOR_LENGTH)
    throw new Failure(`${path} does not have a cursor. ${HOW_TO_BEGIN}`, EXIT.wrongUse);
  return text;
}

const HOW_TO_BEGIN = 'Create it with: users export --out <file> --cursor <file>';

/** The cursor of a file is not one of the service. */
export function wrongCursor(path: string, reason: string, exitCode?: ExitCode): Failure {
  return new Failure(`${path} does not have a cursor of this service: ${reason}`, exitCode);
}

/** The changes after the cursor of a file are no longer available. */
export function cursorExpired(path: string): Failure {
  return new Failure(
    `The changes after the cursor in ${path} are no longer available (410). Export all users again with --cursor ${path}, ` +
      'replace your copy with them, then follow from there.',
    EXIT.cursorExpired,
  );
}
