import { isUtf8 } from 'node:buffer';
import { unauthorized } from '../http/problem.ts';

/** A token in compact form (RFC 7515 section 7.1). Nothing in it has been verified yet. */
export type CompactToken = {
  /** As sent, in base64url. */
  readonly header: string;
  readonly payload: Buffer;
  /** The signed bytes: header and payload as sent. */
  readonly signed: Buffer;
  readonly signature: Buffer;
};

/**
 * Splits a token into its parts. Only the canonical form is accepted, because many texts decode to the same bytes.
 *
 * @throws {Problem} unauthorized_error
 */
export function readCompact(token: string): CompactToken {
  const first = token.indexOf('.');
  const last = token.lastIndexOf('.');
  if (first < 1 || last <= first + 1 || last === token.length - 1)
    throw unauthorized('the token is not in compact form');
  const header = token.slice(0, first);
  decoded(header);
  return {
    header,
    payload: decoded(token.slice(first + 1, last)),
    signed: Buffer.from(token.slice(0, last), 'latin1'),
    signature: decoded(token.slice(last + 1)),
  };
}

/**
 * The value of a JSON text in UTF-8; undefined if it is not JSON. A byte order mark is refused (RFC 8259 section 8.1):
 * most decoders drop it silently, and Buffer does not.
 */
export function jsonIn(bytes: Buffer): unknown {
  if (!isUtf8(bytes)) return undefined;
  try {
    return JSON.parse(bytes.toString());
  } catch {
    return undefined;
  }
}

/**
 * The bytes of a part in base64url without padding. Node's decoder accepts both alphabets and skips other characters,
 * so the bytes must encode to the same text.
 */
function decoded(part: string): Buffer {
  const bytes = Buffer.from(part, 'base64url');
  if (bytes.toString('base64url') !== part) throw unauthorized('the token is not canonical base64url');
  return bytes;
}
