import { fullyDecoded } from './fully-decoded.ts';

export type Cause = { name: string; code?: string; message: string; stack?: string; cause?: Cause };

const MASK = '***';

/**
 * Maximum length in characters. A longer text with a secret is masked as a whole, because a check of thousands of parts
 * takes a millisecond.
 */
const MAX_CHARACTERS_IN_PARTS = 2048;

/** A text without any of these contains neither a token nor an address. Most texts are checked no further. */
const SUSPICIOUS = /[@%.\u0080-\uffff]|eyJ/;

/** The commercial at, also full-width and small (U+FF20, U+FE6B). */
const AT = /[@\uff20\ufe6b]/;

/** The beginning of a JSON object in base64url: nearly every token's header and payload begin like this. */
const JSON_IN_BASE64 = /eyJ[\w-]{8}/;

/**
 * A compact token (RFC 7515 section 3.1), possibly cut off at its end. The pattern stays linear because it begins only
 * at the start of a run.
 */
const COMPACT_TOKEN = /(?<![\w-])[\w-]{10,}\.[\w-]{10,}\./;

/** The scope of an npm package, as in the frames of a stack. */
const PACKAGE_SCOPE = /(?<![\w.+-])@[\w-]+\//g;

/** PostgreSQL's data exceptions, violated constraints and errors raised by triggers. They may quote a value. */
const QUOTING = /^(22|23|P0)...$/;

const MAX_DEPTH = 3;

const FRAMES = /\n +at .*/s;

const BETWEEN_SEGMENTS = /(\/)/;

/** Only ASCII white space: other white space may be the bytes of a letter, read as Latin-1. */
const BETWEEN_WORDS = /([\t-\r ]+)/;

/** A path without the segments that contain a token or an address, anywhere and in any encoding. */
export function redactedPath(path: string): string {
  return redacted(path, BETWEEN_SEGMENTS, isSecretOfCaller);
}

/** A caller's text, such as the User-Agent, without the words that contain a token or an address. */
export function redactedText(text: string): string {
  return redacted(text, BETWEEN_WORDS, isSecretOfCaller);
}

/** An address for a log line: `a***@example.com`. */
export function maskedEmail(email: string): string {
  const at = email.indexOf('@');
  return `${String.fromCodePoint(email.codePointAt(0) ?? 0)}***${email.slice(at)}`;
}

/** The same for a text of this service, of a library or of PostgreSQL. Names of hosts and packages stay. */
export function redactedMessage(message: string): string {
  return redacted(message, BETWEEN_WORDS, isSecretInMessage);
}

/**
 * The part of an error that may be logged. Other members of PostgreSQL's errors contain values of rows. A stack costs as much
 * as a whole request, and names only the bundle.
 */
export function redactedCause(error: unknown, { hasStack = true } = {}, depth = 0): Cause | undefined {
  if (!(error instanceof Error)) return undefined;
  const { name, message, cause } = error;
  const { code, constraint } = error as { code?: unknown; constraint?: unknown };
  const isQuoting = typeof code === 'string' && QUOTING.test(code);
  const by = typeof constraint === 'string' ? ` by ${constraint}` : '';
  const shown = isQuoting ? `a value was refused${by}` : redactedMessage(readMessage(error));
  const inner = depth < MAX_DEPTH ? redactedCause(cause, { hasStack }, depth + 1) : undefined;
  const stack = hasStack ? error.stack : undefined;
  return {
    name,
    ...(typeof code === 'string' && { code }),
    message: shown,
    ...(stack && { stack: redactedStack(stack, message, shown) }),
    ...(inner && { cause: inner }),
  };
}

/** A fault as one text: a reason of the service, or the message of an error after its code. */
export function redactedReason(fault: unknown): string {
  const { code, message } = redactedCause(fault) ?? { message: redactedMessage(String(fault)) };
  return code === undefined ? message : `${code}: ${message}`;
}

/** A message that is never empty. An AggregateError of Node has one error for each address of a host, and no message. */
export function readMessage(fault: unknown): string {
  if (!(fault instanceof Error)) return String(fault);
  const each = fault instanceof AggregateError ? fault.errors.map(readMessage).join('; ') : '';
  return fault.message || each || String((fault as { code?: unknown }).code ?? fault.name);
}

/** The stack begins with the message that the error was created with. The message may have changed since. */
function redactedStack(stack: string, message: string, shown: string): string {
  const at = message === '' ? -1 : stack.indexOf(message);
  const head = at < 0 ? '' : stack.slice(0, at);
  const [frames = ''] = at < 0 ? (FRAMES.exec(stack) ?? []) : [stack.slice(at + message.length)];
  return head + shown + redactedMessage(frames);
}

function isSecretOfCaller(decoded: string): boolean {
  return AT.test(decoded) || JSON_IN_BASE64.test(decoded) || COMPACT_TOKEN.test(decoded);
}

function isSecretInMessage(decoded: string): boolean {
  return AT.test(decoded.replace(PACKAGE_SCOPE, '')) || JSON_IN_BASE64.test(decoded);
}

function redacted(text: string, between: RegExp, isSecret: (decoded: string) => boolean): string {
  const holdsSecret = (part: string) => SUSPICIOUS.test(part) && isSecret(fullyDecoded(part));
  if (!holdsSecret(text)) return text;
  if (text.length > MAX_CHARACTERS_IN_PARTS) return MASK;
  const shown = text
    .split(between)
    .map((part) => (holdsSecret(part) ? MASK : part))
    .join('');
  return shown === text ? MASK : shown;
}
