/** A path without the segments that look like an address, for log lines and spans. */
export function withoutAddresses(path: string): string {
  return path.split('/').map(withoutAddress).join('/');
}

function withoutAddress(segment: string): string {
  return segment.includes('@') || segment.includes('%40') ? '***' : segment;
}
