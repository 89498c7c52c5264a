import { readFileSync, statSync } from 'node:fs';
import { EXIT, type ExitCode, Failure, reasonOf } from './failure.ts';

/** In characters. */
export const MAX_CURSOR_LENGTH = 1000;

/** The cursor that a file has. */
export function readCursor(path: string): string {
  const fault = (reason: string) =>
    new Failure(
      `${path} ${reason}. Create it with: users export --out <file> --cursor <file>`,
      EXIT.wrongUse,
    );
  let text: string;
  try {
    // Reading from a pipe might wait for ever.
    if (!statSync(path).isFile()) throw new Failure('it is not a file');
    text = readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw fault(`cannot be read: ${reasonOf(error)}`);
  }
  if (text === '') throw fault('is empty');
  // The service takes these two words instead of a cursor.
  if (!/^(?!(?:now|oldest)$)[\x21-\x7e]+$/.test(text) || text.length > MAX_CURSOR_LENGTH)
    throw fault('does not have a cursor');
  return text;
}

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
