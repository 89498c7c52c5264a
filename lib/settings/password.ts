import { readFile } from 'node:fs/promises';
import type { Settings } from './settings.ts';

/** In milliseconds. A connection that is being opened waits for the password. */
const PASSWORD_TIME_LIMIT_MS = 900;

/**
 * A source may answer with anything. This is neither empty nor of several lines nor binary, and no page of HTML. Tokens of
 * cloud providers, which are passwords for some minutes, have a few thousand characters.
 */
const PASSWORD = /^(?!<(?:!doctype|html|\?xml))[^\p{Cc}\ufffd]{1,16384}$/iu;

/**
 * The password as it is now: the setting itself, or what the file or the address that it names holds. Nothing of the
 * source, of its name or of what it answers is in an error: each may be a secret, also in the wrong place.
 *
 * @throws {Error} if it cannot be read
 * @see AWS, "Use Secrets Manager secrets in Lambda functions", for the extension's address and response
 */
export async function readPassword({
  password,
  passwordFrom,
  sessionToken,
}: Pick<Settings['postgres'], 'password' | 'passwordFrom' | 'sessionToken'>): Promise<string> {
  if (passwordFrom === undefined) return password;
  const reading = /^https?:/i.test(passwordFrom)
    ? readUrl(passwordFrom, sessionToken)
    : readFile(passwordFrom, 'utf8');
  // Only codes: the messages of Node and of undici quote paths, URLs and responses.
  const text = await reading.catch((fault) => refusePassword(fault.code ?? fault.cause?.code ?? fault.name));
  return parseSecret(text) ?? refusePassword('it holds neither a password nor the documented JSON');
}

async function readUrl(url: string, sessionToken = ''): Promise<string> {
  const response = await fetch(url, {
    headers: { 'X-Aws-Parameters-Secrets-Token': sessionToken },
    redirect: 'manual',
    signal: AbortSignal.timeout(PASSWORD_TIME_LIMIT_MS),
  });
  if (response.ok) return response.text();
  await response.body?.cancel();
  throw Object.assign(new Error('the source refuses'), { code: `status ${response.status}` });
}

function refusePassword(reason: string): never {
  throw new Error(`the password cannot be read from SVC_POSTGRES_PASSWORD_FROM: ${reason}`);
}

/**
 * The password in a text: the text itself, the `SecretString` of AWS, or the `password` of a secret of RDS, which is JSON
 * itself. Undefined if there is none.
 */
function parseSecret(text: string): string | undefined {
  const secret = parseObject(text);
  if (secret === undefined) return [text.replace(/\r?\n$/, '')].find((one) => PASSWORD.test(one));
  const { SecretString, password } = secret;
  if (typeof SecretString === 'string') return parseSecret(SecretString);
  return typeof password === 'string' && PASSWORD.test(password) ? password : undefined;
}

/** Undefined for a text that is not a JSON object or array. The message of JSON.parse would quote the text. */
function parseObject(text: string): { SecretString?: unknown; password?: unknown } | undefined {
  try {
    const value = JSON.parse(text);
    return typeof value === 'object' && value !== null ? value : undefined;
  } catch {
    // A text that begins like JSON is a JSON that was cut off.
    return /^\s*[{[]\s*["\]}]/.test(text) ? {} : undefined;
  }
}
