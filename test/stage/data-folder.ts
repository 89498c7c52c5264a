import { realpath, rm } from 'node:fs/promises';

/**
 * Removes the files of an embedded PostgreSQL. If its account cannot access the folder, a link in its place leads to
 * them.
 */
export async function removeDataFolder(folder: string): Promise<void> {
  const data = await realpath(folder).catch(() => folder);
  await rm(data, { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
}
