import { UnexpectedMessage, unsupportedAuthentication } from './faults.ts';

/** A message begins with its type and its length, which includes itself. */
export const HEADER_BYTES = 5;
export const DATA_ROW = 'D'.charCodeAt(0);
const READY_FOR_QUERY = 'Z'.charCodeAt(0);

/** Far more than a row or an error of the service has. */
const MAX_LENGTH_BYTES = 2 ** 24;

/** A message that may come, before or after the session has begun: its length, or what follows the length, in Latin-1. */
type Form = {
  readonly when: 'start' | 'session' | 'any';
  readonly length?: number;
  readonly content?: RegExp;
};

const EMPTY: Form = { when: 'session', length: 4 };

/** The messages by their types. The service neither copies nor asks for a part of the rows. */
const FORMS: Readonly<Record<string, Form>> = {
  R: { when: 'start', content: /^.{4}/s },
  K: { when: 'start', length: 12 },
  S: { when: 'any', content: /^[^\0]+\0[^\0]*\0$/ },
  A: { when: 'any', content: /^.{4}[^\0]+\0[^\0]*\0$/s },
  N: { when: 'any', content: /^(?:[^\0]+\0)+\0$/ },
  E: { when: 'any', content: /^(?=(?:[^\0]+\0)*C[0-9A-Z]{5}\0)(?:[^\0]+\0)+\0$/ },
  Z: { when: 'any', length: 5 },
  1: EMPTY,
  2: EMPTY,
  3: EMPTY,
  n: EMPTY,
  t: { when: 'session', content: /^../s },
  T: { when: 'session', content: /^..(?:[^\0]*\0.{18})*$/s },
  D: { when: 'session' },
  C: { when: 'session', content: /^[^\0]+\0$/ },
};
const BY_TYPE = Array.from({ length: 256 }, (_, type) => FORMS[String.fromCharCode(type)]);

/** Forms of the content of messages about authentication, and names of those that the service does not have. */
const METHODS: Readonly<Record<number, RegExp>> = {
  0: /^$/,
  3: /^$/,
  5: /^.{4}$/s,
  10: /^(?:[^\0]+\0)+\0$/,
  11: /^/,
  12: /^/,
};
const UNSUPPORTED: Readonly<Record<number, string>> = { 2: 'krb5', 7: 'gss', 8: 'gss', 9: 'sspi' };

/**
 * Checks the messages of a session before pg's parser reads them, which throws at some, and never returns from others.
 *
 * @see PostgreSQL, "Message Formats"
 */
export class MessageCheck {
  #hasBegun = false;

  /**
   * Checks the message at `at`, of which at least the header has arrived. @returns its end
   *
   * @throws {UnexpectedMessage}
   */
  findEnd(bytes: Buffer, at: number): number {
    const type = bytes[at] as number;
    const length = int32At(bytes, at + 1);
    const form = BY_TYPE[type];
    const isDue = form && (form.when === 'any' || (form.when === 'session') === this.#hasBegun);
    const end = at + 1 + length;
    const isSized = form?.length ? length === form.length : length > 4 && length <= MAX_LENGTH_BYTES;
    if (!isDue || !isSized || (end <= bytes.length && !isWellFormed(form, bytes, at, end))) {
      const name = JSON.stringify(String.fromCharCode(type));
      throw new UnexpectedMessage(
        `a message of type ${name} with ${length} bytes is malformed or was not expected`,
      );
    }
    if (type === READY_FOR_QUERY) this.#hasBegun = true;
    return end;
  }
}

function isWellFormed({ when, content }: Form, bytes: Buffer, at: number, end: number): boolean {
  const begin = at + HEADER_BYTES;
  if (bytes[at] === DATA_ROW) return hasFields(bytes, begin, end);
  if (content?.test(bytes.toString('latin1', begin, end)) === false) return false;
  if (when !== 'start' || content === undefined) return true;
  const method = bytes.readInt32BE(begin);
  const form = METHODS[method];
  if (!form) throw unsupportedAuthentication(UNSUPPORTED[method] ?? String(method));
  return form.test(bytes.toString('latin1', begin + 4, end));
}

/** Each field follows its length, which is -1 for null. The row begins with their number. */
function hasFields(bytes: Buffer, begin: number, end: number): boolean {
  let at = begin + 2;
  for (let left = end < at ? -1 : int32At(bytes, begin) >> 16; left !== 0; left -= 1) {
    const length = left > 0 && at + 4 <= end ? int32At(bytes, at) : -2;
    if (length < -1) return false;
    at += 4 + Math.max(length, 0);
  }
  return at === end;
}

/** The same as `readInt32BE`, which creates three numbers on the heap until it is compiled: 15 % of a list's memory. */
export function int32At(bytes: Buffer, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  );
}
