/** A compact token (RFC 7515 section 3.1), whole or with its end missing. */
const TOKEN = /^[\w-]{10,}\.[\w-]{10,}\.[\w-]*$/;

/** A path without the segments that look like an address or a token, for log lines and spans. */
export function maskedPath(path: string): string {
  return path.split('/').map(maskedSegment).join('/');
}

function maskedSegment(segment: string): string {
  const isPersonal = segment.includes('@') || segment.includes('%40') || TOKEN.test(segment);
  return isPersonal ? '***' : segment;
}
