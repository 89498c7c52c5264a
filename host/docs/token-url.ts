/** Milliseconds that the issuer has to describe itself. */
const METADATA_TIMEOUT = 1000;

/**
 * Where the issuer gives tokens: what its metadata says (RFC 8414), else `/token` below its name, which is where
 * the development issuer has it. Metadata that could not be had is asked for again the next time.
 */
export function tokenUrlOf(issuer: string): () => Promise<string> {
  let known: string | undefined;
  return async () => {
    known ??= await tokenEndpointOf(issuer);
    return known ?? `${withoutSlash(issuer)}/token`;
  };
}

/** The origin of an http or https URL; of nothing else, since an issuer may have any name. */
export function originOf(url: string): string | undefined {
  const { protocol, origin } = URL.parse(url) ?? {};
  return protocol && /^https?:$/.test(protocol) ? origin : undefined;
}

async function tokenEndpointOf(issuer: string): Promise<string | undefined> {
  try {
    const response = await fetch(`${withoutSlash(issuer)}/.well-known/openid-configuration`, {
      signal: AbortSignal.timeout(METADATA_TIMEOUT),
    });
    const { token_endpoint } = (await response.json()) as { token_endpoint?: unknown };
    return originOf(String(token_endpoint)) && String(token_endpoint);
  } catch {
    // The issuer is away, or describes itself in another way.
    return undefined;
  }
}

const withoutSlash = (url: string): string => url.replace(/\/$/, '');
