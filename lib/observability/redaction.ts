import { fullyDecoded } from './fully-decoded.ts';

/** What may be known of an error. */
export type Cause = { name: string; code?: string; message: string; stack?: string; cause?: Cause };

/** What stands in place of a token, an address or a value. */
const MASK = '***';

/** In characters. A longer text with a secret in it is masked whole: to look at thousands of parts takes a millisecond. */
const LONGEST_IN_PARTS = 2048;

/** Without one of these no text holds a token or an address: most texts are looked at no further. */
const SUSPICIOUS = /[@%.\u0080-\uffff]|eyJ/;

/** The commercial at, full-width and small (U+FF20, U+FE6B) too. */
const AT = /[@\uff20\ufe6b]/;

/** How a JSON object in base64url begins: the header of nearly every token, and its payload. */
const JSON_IN_BASE64 = /eyJ[\w-]{8}/;

/** A compact token (RFC 7515 section 3.1), its end may be missing. Begun at the start of a run alone, it stays linear. */
const COMPACT_TOKEN = /(?<![\w-])[\w-]{10,}\.[\w-]{10,}\./;

/** The scope of an npm package, as in the frames of a stack. */
const PACKAGE_SCOPE = /(?<![\w.+-])@[\w-]+\//g;

/** PostgreSQL's data exceptions, violated constraints and errors raised by triggers: they may quote a value. */
const QUOTING = /^(22|23|P0)...$/;

/** So many causes behind an error are told. */
const MOST_DEEP = 3;

/** Where each function was called, a line each. */
const FRAMES = /\n +at .*/s;

/** Unicode's other white space may be bytes of a letter, read as Latin-1. */
const BETWEEN_WORDS = /([\t-\r ]+)/;

/** A path without the segments in which a token or an address stands, anywhere and however encoded. */
export function redactedPath(path: string): string {
  return redacted(path, '/', isSecretOfCaller);
}

/** A text of a caller's, such as the User-Agent, without the words in which a token or an address stands. */
export function redactedText(text: string): string {
  return redacted(text, BETWEEN_WORDS, isSecretOfCaller);
}

/** A text of ours, of a library's or of PostgreSQL's, likewise: names of hosts and packages stay. */
export function redactedMessage(message: string): string {
  return redacted(message, BETWEEN_WORDS, isSecretInMessage);
}

/** An address fit for a log line: `a***@example.com`. */
export function maskedEmail(email: string): string {
  const at = email.indexOf('@');
  return `${String.fromCodePoint(email.codePointAt(0) ?? 0)}${MASK}${email.slice(at)}`;
}

/** What may be known of an error: the other members of PostgreSQL's errors hold values of rows. */
export function redactedCause(error: unknown, depth = 0): Cause | undefined {
  if (!(error instanceof Error)) return undefined;
  const { name, message, stack, cause } = error;
  const { code } = error as { code?: unknown };
  const isQuoting = typeof code === 'string' && QUOTING.test(code);
  const told = isQuoting ? 'a value was refused' : redactedMessage(message) || messagesIn(error, depth);
  const inner = depth < MOST_DEEP ? redactedCause(cause, depth + 1) : undefined;
  return {
    name,
    ...(typeof code === 'string' && { code }),
    message: told,
    ...(stack && { stack: redactedStack(stack, message, told) }),
    ...(inner && { cause: inner }),
  };
}

/** Several errors in one say nothing together where Node makes them, one for each address of a host. */
function messagesIn(error: Error, depth: number): string {
  if (!(error instanceof AggregateError) || depth === MOST_DEEP) return '';
  return error.errors.map((one) => redactedCause(one, depth + 1)?.message).join('; ');
}

/** The stack begins with the message that the error was made with, which may have changed since. */
function redactedStack(stack: string, message: string, told: string): string {
  const at = message === '' ? -1 : stack.indexOf(message);
  const head = at < 0 ? '' : stack.slice(0, at);
  const [frames = ''] = at < 0 ? (FRAMES.exec(stack) ?? []) : [stack.slice(at + message.length)];
  return head + told + redactedMessage(frames);
}

function isSecretOfCaller(decoded: string): boolean {
  return AT.test(decoded) || JSON_IN_BASE64.test(decoded) || COMPACT_TOKEN.test(decoded);
}

function isSecretInMessage(decoded: string): boolean {
  return AT.test(decoded.replace(PACKAGE_SCOPE, '')) || JSON_IN_BASE64.test(decoded);
}

function redacted(text: string, between: string | RegExp, isSecret: (decoded: string) => boolean): string {
  const holdsSecret = (part: string) => SUSPICIOUS.test(part) && isSecret(fullyDecoded(part));
  if (!holdsSecret(text)) return text;
  if (text.length > LONGEST_IN_PARTS) return MASK;
  const separator = typeof between === 'string' ? between : '';
  const shown = text
    .split(between)
    .map((part) => (holdsSecret(part) ? MASK : part))
    .join(separator);
  return shown === text ? MASK : shown;
}
