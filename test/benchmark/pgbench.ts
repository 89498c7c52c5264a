import { execFile } from 'node:child_process';
import { globSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openWindow } from '../lab/meters/window.ts';
import { fromDebian } from '../lab/stage/packages.ts';
import type { Effort, Figures } from './measure.ts';
import type { Stage } from './stage/stage.ts';
import { emailInSql, idInSql } from './stage/users.ts';

const CONNECTIONS = 10;

const COLUMNS = 'id, email, full_name, is_active, created_at, updated_at';

/** pgbench cannot make an id or an address: PostgreSQL joins it from the number. */
const ID = idInSql(':n');

/** The statements that the service sends, by workload, without the service. */
const statements: Readonly<Record<string, string>> = {
  get: `SELECT ${COLUMNS} FROM users WHERE id = ${ID}`,
  create: `INSERT INTO users (id, email, full_name)
    VALUES (uuidv7(), 'pgbench-' || :fresh || '@example.com', 'Created by pgbench') RETURNING ${COLUMNS}`,
  update: `UPDATE users SET full_name = 'Updated ' || :n,
    updated_at = greatest(clock_timestamp(), updated_at + interval '1 millisecond'), version = version + 1
    WHERE id = ${ID} RETURNING ${COLUMNS}`,
  list: `SELECT ${COLUMNS} FROM users ORDER BY created_at, id LIMIT 100`,
  'by-email': `SELECT ${COLUMNS} FROM users
    WHERE lower(email COLLATE "C") = lower(${emailInSql(':n')} COLLATE "C")`,
};

/** A client of PostgreSQL itself: what is left when there is no service. */
export type Pgbench = {
  knows(workload: string): boolean;
  measure(workload: string, database: string, effort: Effort): Promise<Figures>;
};

/** Finds pgbench, or gets it; rejects when neither works. */
export async function startPgbench(stage: Stage): Promise<Pgbench> {
  const program = await findProgram();
  return {
    knows: (workload) => Object.hasOwn(statements, workload),
    async measure(workload, database, { warmUp, seconds }) {
      const folder = await mkdtemp(join(tmpdir(), 'user-management-pgbench-'));
      const script = join(folder, 'script.sql');
      const variables = `\\set n random(1, ${stage.users})\n\\set fresh random(1, 4611686018427387904)\n`;
      await writeFile(script, `${variables}${statements[workload]?.replaceAll(/\s+/g, ' ')};\n`);
      const run = (time: number) => program(script, stage.urlOf(database), time);
      await run(Math.ceil(warmUp));
      const close = openWindow({ postgres: stage.postgresProcess, load: [process.pid] });
      const printed = await run(Math.ceil(seconds));
      const used = close();
      await rm(folder, { recursive: true });
      await stage.vacuum(database);
      const transactions = Number(/transactions actually processed: (\d+)/.exec(printed)?.[1]);
      const failed = Number(/failed transactions: (\d+)/.exec(printed)?.[1] ?? 0);
      return {
        requestsPerSecond: Number(/^tps = ([\d.]+)/m.exec(printed)?.[1]),
        server: null,
        postgres: (used.postgres * 1000) / transactions,
        inKernel: null,
        p50: null,
        p99: null,
        memory: null,
        // pgbench itself has ended: it counts as something else.
        load: used.load / used.seconds,
        others: used.others,
        faults: failed > 0 ? { 'failed transactions': failed } : {},
      };
    },
  };
}

async function findProgram() {
  const installed = () => globSync('/usr/lib/postgresql/*/bin/pgbench').at(-1);
  const folder = installed() ? '/' : join(await fromDebian(['postgresql-15', 'libpq5']), 'root');
  const [program] = globSync(join(folder, 'usr/lib/postgresql/*/bin/pgbench')).slice(-1);
  if (!program) throw new Error('there is no pgbench');
  const env = {
    PATH: process.env.PATH,
    LD_LIBRARY_PATH: globSync(join(folder, 'usr/lib/*-linux-gnu')).join(':'),
  };
  return async (script: string, url: string, seconds: number): Promise<string> => {
    const load = ['-c', String(CONNECTIONS), '-j', '2', '-T', String(seconds), '-M', 'prepared'];
    const { stdout } = await promisify(execFile)(program, ['-n', ...load, '-f', script, url], { env });
    return stdout;
  };
}
