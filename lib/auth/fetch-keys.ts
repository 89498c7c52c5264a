import type { Settings } from '../settings/settings.ts';
import { importUsableKeys } from './usable-keys.ts';

const TIME_LIMIT_MS = 3000;
const SIZE_LIMIT_BYTES = 256 * 1024;

/**
 * Fetches the usable keys of the provider's JWK Set, without following redirects.
 *
 * @throws {Error} if the response is not a set with at least one usable key
 */
export async function fetchKeys({ jwksUri, algorithms }: Settings['oauth'], stopped: AbortSignal) {
  const response = await fetch(jwksUri, {
    headers: { accept: 'application/jwk-set+json, application/json' },
    redirect: 'error',
    signal: AbortSignal.any([stopped, AbortSignal.timeout(TIME_LIMIT_MS)]),
  });
  if (response.status !== 200) {
    await response.body?.cancel();
    throw new Error(`the key server answered ${response.status}`);
  }
  const keys = await importUsableKeys(parseJson(await readText(response)), algorithms);
  if (keys.length === 0) throw new Error('the key server answered without a usable key');
  return keys;
}

/** The message of JSON.parse would quote the response. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Error("the key server's response is not JSON");
  }
}

/** Reads chunk by chunk, so that an endless response takes no more memory than the limit. */
async function readText(response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.byteLength;
    if (size > SIZE_LIMIT_BYTES)
      throw new Error(`the key server's response is larger than ${SIZE_LIMIT_BYTES} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}
