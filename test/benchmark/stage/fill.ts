import { chmod, mkdtemp, open, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import type { Progress } from '../report/progress.ts';
import { copyLineOf } from './users.ts';

const ROWS_A_FILE = 250_000;
const ROWS_A_WRITE = 5000;

/** Adds the users from number `from` to number `to` by COPY, and leaves the table as a calm day would: vacuumed. */
export async function fill(url: string, from: number, to: number, progress: Progress): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  const folder = await mkdtemp(join(tmpdir(), 'user-management-fill-'));
  // PostgreSQL reads the files itself, under an account of its own.
  await chmod(folder, 0o755);
  const file = join(folder, 'users');
  for (let first = from; first <= to; first += ROWS_A_FILE) {
    const last = Math.min(first + ROWS_A_FILE - 1, to);
    await writeLines(file, first, last);
    await client.query(`COPY users (id, email, full_name, is_active, created_at, updated_at) FROM '${file}'`);
    progress(`filling: ${last.toLocaleString('en')} of ${to.toLocaleString('en')} users`);
  }
  progress('vacuuming the users');
  await client.query('VACUUM (ANALYZE) users');
  await client.query('CHECKPOINT');
  await client.end();
  await rm(folder, { recursive: true });
}

async function writeLines(path: string, first: number, last: number): Promise<void> {
  const file = await open(path, 'w', 0o644);
  for (let begin = first; begin <= last; begin += ROWS_A_WRITE) {
    const count = Math.min(ROWS_A_WRITE, last - begin + 1);
    await file.write(Array.from({ length: count }, (_, index) => copyLineOf(begin + index)).join(''));
  }
  await file.close();
}
