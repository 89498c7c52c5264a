type Permissions = {
  /** An origin that the page may send requests to. */
  readonly mayAsk?: string | undefined;
  /** Hashes of inline styles. */
  readonly styles?: readonly string[];
};

/** The Content-Security-Policy of a page: nothing from elsewhere, and nothing inline except what is permitted. */
export function policy({ mayAsk = '', styles = [] }: Permissions = {}): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    ["style-src 'self'", ...styles.map((hash) => `'${hash}'`)].join(' '),
    "img-src 'self' data:",
    `connect-src 'self' ${mayAsk}`.trim(),
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}
