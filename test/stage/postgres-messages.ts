import type { Transform } from 'node:stream';
import { through } from './proxy.ts';

/** Types of PostgreSQL's messages: a row, a statement is complete, it failed, and the next one may follow. */
const DATA_ROW = 'D';
const COMMAND_COMPLETE = 'C';
export const ERROR_RESPONSE = 'E';
export const READY_FOR_QUERY = 'Z';

const HEAD = 5;

/** AuthenticationOk, and AuthenticationCleartextPassword. */
export const AUTHENTICATION_OK = Buffer.from('R\0\0\0\x08\0\0\0\0');
export const ASKS_FOR_PASSWORD = Buffer.from('R\0\0\0\x08\0\0\0\x03');

/**
 * Takes what PostgreSQL sends apart into its messages; each is passed on as `pass` returns it, or not at all.
 *
 * @see PostgreSQL, "Frontend/Backend Protocol", message formats
 */
export function messagesThrough(pass: (type: string, message: Buffer) => Buffer | undefined): Transform {
  let bytes = Buffer.alloc(0);
  return through(async (chunk, push) => {
    bytes = Buffer.concat([bytes, chunk]);
    while (bytes.length >= HEAD && bytes.length > bytes.readInt32BE(1)) {
      const message = bytes.subarray(0, 1 + bytes.readInt32BE(1));
      bytes = bytes.subarray(message.length);
      const passed = pass(message.toString('latin1', 0, 1), message);
      if (passed) push(passed);
    }
  });
}

/**
 * Finds the messages of one session that complete a create: its user, the row before, was selected from what it wrote. A
 * look at the schema selects one row, too, which has no address.
 */
export function findCreates(): (type: string, message: Buffer) => boolean {
  let hasAddress = false;
  return (type, message) => {
    if (type === DATA_ROW) hasAddress = message.includes('@');
    return type === COMMAND_COMPLETE && hasAddress && message.toString('latin1', HEAD) === 'SELECT 1\0';
  };
}

/** A message of this type with this content, in Latin-1. */
export function messageOf(type: string, content = ''): Buffer {
  const bytes = Buffer.from(`${type}\0\0\0\0${content}`, 'latin1');
  bytes.writeInt32BE(bytes.length - 1, 1);
  return bytes;
}

/** An ErrorResponse with this SQLSTATE, as PostgreSQL sends it in place of a completed command. */
export function errorResponse(sqlState: string, message = 'fault'): Buffer {
  return messageOf(ERROR_RESPONSE, `SERROR\0VERROR\0C${sqlState}\0M${message}\0\0`);
}
