import { readFile } from 'node:fs/promises';
import type { Settings } from '../../settings/settings.ts';

/** In milliseconds; a connection waits for it. */
const TIME_LIMIT_MS = 900;

type Source = Pick<Settings['postgres'], 'password' | 'passwordFrom' | 'sessionToken'>;

/**
 * The password as it is now: the setting itself, or what the file or the address that it names holds.
 *
 * @throws {Error} if it cannot be read
 * @see AWS, "Use Secrets Manager secrets in Lambda functions", for the extension's address and response
 */
export async function readPassword({ password, passwordFrom, sessionToken }: Source): Promise<string> {
  if (passwordFrom === undefined) return password;
  if (!/^https?:/i.test(passwordFrom)) return (await readFile(passwordFrom, 'utf8')).replace(/\r?\n$/, '');
  const response = await fetch(passwordFrom, {
    headers: { 'X-Aws-Parameters-Secrets-Token': sessionToken ?? '' },
    signal: AbortSignal.timeout(TIME_LIMIT_MS),
  });
  if (!response.ok) throw new Error(`the password could not be read: the answer was ${response.status}`);
  return parseSecret(String(((await response.json()) as { SecretString?: unknown }).SecretString));
}

/** RDS keeps its secrets as JSON with `username`, `password` and more; others are the password itself. */
function parseSecret(secret: string): string {
  try {
    const { password } = JSON.parse(secret);
    if (typeof password === 'string') return password;
  } catch {
    // Not JSON: see below.
  }
  return secret;
}
