import { randomUUID } from 'node:crypto';
import { mkdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { exportJWK, generateKeyPair, type JWK } from 'jose';

/** Returns the RS256 private key in `file`, and creates it at the first time; without a file a new one. */
export async function keepSigningKey(file: string | undefined): Promise<JWK> {
  const kept = file && (await readFile(file, 'utf8').catch(() => undefined));
  if (kept) return JSON.parse(kept) as JWK;

  const { privateKey } = await generateKeyPair('RS256', { extractable: true });
  const key = { ...(await exportJWK(privateKey)), kid: randomUUID(), alg: 'RS256', use: 'sig' };
  if (file) await writePrivately(file, JSON.stringify(key));
  return key;
}

// Writes the whole key or nothing, because a start that is cut off must not leave half a key.
async function writePrivately(file: string, text: string): Promise<void> {
  const draft = `${file}.${process.pid}`;
  await mkdir(dirname(file), { recursive: true });
  await rm(draft, { force: true });
  await writeFile(draft, text, { mode: 0o600, flag: 'wx' });
  await rename(draft, file);
}
