import { UnexpectedMessage, withCode } from './faults.ts';

/** A message begins with its type and its length, which includes itself. */
export const HEADER_BYTES = 5;
export const DATA_ROW = 'D'.charCodeAt(0);
const AUTHENTICATION = 'R'.charCodeAt(0);
const READY_FOR_QUERY = 'Z'.charCodeAt(0);

/** Far more than a row or an error of the service has. */
const MAX_LENGTH_BYTES = 2 ** 24;

/** Whether a message may come before or after the session has begun, and its length, or what follows the length in Latin-1. */
type Form = { readonly when: 'start' | 'session' | 'any'; readonly content: number | RegExp };

/** The messages by their types. The service neither copies nor asks for a part of the rows. */
const FORMS: Readonly<Record<string, Form>> = {
  // After the number of the method in decimal and a space.
  R: { when: 'start', content: /^(?:[03] |5 .{4}|10 (?:[^\0]+\0)+\0|1[12] .*)$/s },
  K: { when: 'start', content: 12 },
  S: { when: 'any', content: /^[^\0]+\0[^\0]*\0$/ },
  A: { when: 'any', content: /^.{4}[^\0]+\0[^\0]*\0$/s },
  N: { when: 'any', content: /^(?:[^\0]+\0)+\0$/ },
  E: { when: 'any', content: /^(?=(?:[^\0]+\0)*C[0-9A-Z]{5}\0)(?:[^\0]+\0)+\0$/ },
  Z: { when: 'any', content: 5 },
  1: { when: 'session', content: 4 },
  2: { when: 'session', content: 4 },
  3: { when: 'session', content: 4 },
  n: { when: 'session', content: 4 },
  t: { when: 'session', content: /^../s },
  T: { when: 'session', content: /^..(?:[^\0]*\0.{18})*$/s },
  D: { when: 'session', content: /^../s },
  C: { when: 'session', content: /^[^\0]+\0$/ },
};
const BY_TYPE = Array.from({ length: 256 }, (_, type) => FORMS[String.fromCharCode(type)]);

/** Numbers of the methods of authentication that the service has, and names of others. */
const SUPPORTED = [0, 3, 5, 10, 11, 12];
const UNSUPPORTED: Readonly<Record<number, string>> = { 2: 'krb5', 7: 'gss', 8: 'gss', 9: 'sspi' };

/** Checks messages before pg's parser reads them, which throws at some, and never returns from others. */
export class MessageCheck {
  #hasBegun = false;

  /** @returns the end of the message at `offset`, of which at least the header has arrived. @throws {UnexpectedMessage} */
  findEnd(bytes: Buffer, offset: number): number {
    const type = bytes[offset] as number;
    const form = BY_TYPE[type];
    const length = int32At(bytes, offset + 1);
    const end = offset + 1 + length;
    if (
      !form ||
      !this.#isDue(form, length) ||
      (end <= bytes.length && !isWellFormed(form, bytes, offset, end))
    ) {
      const name = JSON.stringify(String.fromCharCode(type));
      throw new UnexpectedMessage(
        `a message of type ${name} with ${length} bytes is malformed or was not expected`,
      );
    }
    if (type === READY_FOR_QUERY) this.#hasBegun = true;
    return end;
  }

  #isDue({ when, content }: Form, length: number): boolean {
    if (when !== 'any' && (when === 'session') !== this.#hasBegun) return false;
    return typeof content === 'number' ? length === content : length > 4 && length <= MAX_LENGTH_BYTES;
  }
}

function isWellFormed({ content: form }: Form, bytes: Buffer, offset: number, end: number): boolean {
  const begin = offset + HEADER_BYTES;
  if (typeof form === 'number') return true;
  if (bytes[offset] === DATA_ROW) return hasFields(bytes, begin, end);
  if (bytes[offset] !== AUTHENTICATION) return form.test(bytes.toString('latin1', begin, end));
  if (end - begin < 4) return false;
  const method = bytes.readInt32BE(begin);
  if (SUPPORTED.includes(method)) return form.test(`${method} ${bytes.toString('latin1', begin + 4, end)}`);
  const name = UNSUPPORTED[method] ?? method;
  const fault = `PostgreSQL requires the authentication method ${name} (pg_hba.conf), which is not supported`;
  throw withCode(new Error(fault), 'authentication');
}

/** Each field follows its length, which is -1 for null. The row begins with their number. */
function hasFields(bytes: Buffer, begin: number, end: number): boolean {
  let offset = begin + 2;
  for (let left = end < offset ? -1 : int32At(bytes, begin) >> 16; left !== 0; left -= 1) {
    const length = left > 0 && offset + 4 <= end ? int32At(bytes, offset) : -2;
    if (length < -1) return false;
    offset += 4 + Math.max(length, 0);
  }
  return offset === end;
}

/** The same as `readInt32BE`, which creates three numbers on the heap until it is compiled: 15 % of a list's memory. */
export function int32At(bytes: Buffer, offset: number): number {
  return (
    ((bytes[offset] as number) << 24) |
    ((bytes[offset + 1] as number) << 16) |
    ((bytes[offset + 2] as number) << 8) |
    (bytes[offset + 3] as number)
  );
}
