const METADATA_TIMEOUT_MS = 1000;

/** In milliseconds: metadata that could not be fetched are fetched again after this time. */
const RETRY_PERIOD_MS = 2000;

/**
 * The token endpoint of the issuer, by its metadata (RFC 8414). Otherwise it is `/token` below the issuer's name, as
 * for the development issuer.
 */
export function tokenUrlOf(issuer: string): () => Promise<string> {
  const base = issuer.replace(/\/$/, '');
  let endpoint: Promise<string | undefined>;
  let fetchAt = 0;
  return async () => {
    if (performance.now() >= fetchAt) {
      fetchAt = performance.now() + RETRY_PERIOD_MS;
      endpoint = tokenEndpointOf(base);
      if (await endpoint) fetchAt = Number.POSITIVE_INFINITY;
    }
    return (await endpoint) ?? `${base}/token`;
  };
}

/** The origin of an http or https URL; undefined for any other text, because an issuer may have any name. */
export function originOf(url: string): string | undefined {
  const { protocol, origin } = URL.parse(url) ?? {};
  return protocol && /^https?:$/.test(protocol) ? origin : undefined;
}

async function tokenEndpointOf(base: string): Promise<string | undefined> {
  try {
    const response = await fetch(`${base}/.well-known/openid-configuration`, {
      signal: AbortSignal.timeout(METADATA_TIMEOUT_MS),
    });
    const { token_endpoint } = (await response.json()) as { token_endpoint?: unknown };
    return originOf(String(token_endpoint)) && String(token_endpoint);
  } catch {
    // The issuer is unavailable, or describes itself in another way.
    return undefined;
  }
}
