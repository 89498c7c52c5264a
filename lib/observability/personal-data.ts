/** A path without the parts of it that look like an address, for log lines and spans. */
export function withoutAddresses(path: string): string {
  return path.replace(/[^/]*(?:@|%40)[^/]*/gi, '***');
}
