/** An address for a log line: `a***@example.com`. */
export function maskedEmail(email: string): string {
  const at = email.indexOf('@');
  return `${String.fromCodePoint(email.codePointAt(0) ?? 0)}***${email.slice(at)}`;
}
