import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Kept between runs. */
const CACHE = join(import.meta.dirname, '../../.data/monitoring');

/** Prometheus and promtool of Debian's package, unpacked without installation. */
export async function prometheusPrograms(): Promise<{
  readonly prometheus: string;
  readonly promtool: string;
}> {
  const programs = join(CACHE, 'usr/bin');
  if (!existsSync(programs)) await unpackInto(CACHE);
  return { prometheus: join(programs, 'prometheus'), promtool: join(programs, 'promtool') };
}

/** Under its final name the folder is complete, also after an interrupted run. */
async function unpackInto(folder: string): Promise<void> {
  const draft = `${folder}.${process.pid}`;
  await mkdir(draft, { recursive: true });
  await run('apt-get', ['download', '-qq', 'prometheus'], { cwd: draft }).catch(({ stderr }) => {
    throw new Error(`the package prometheus cannot be fetched; apt-get update may help: ${stderr}`);
  });
  const [archive = ''] = await readdir(draft);
  await run('dpkg', ['-x', archive, '.'], { cwd: draft });
  await rm(join(draft, archive));
  await rename(draft, folder).catch(() => rm(draft, { recursive: true }));
}
