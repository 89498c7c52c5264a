// node test/benchmark/engine.ts <pairs> <folder> <other folder> …: the CPU time of one statement in lib/postgres of several
// copies of this project, in turns and in one process, so that other load on the machine concerns all of them.
import { mkdtempSync, readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { sql } from 'kysely';
import { startPostgres } from '../../host/development/postgres.ts';
import type * as Engine from '../../lib/postgres/index.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { inDatabase } from '../stage/rows.ts';

type Workload = { readonly count: number; readonly run: () => Promise<unknown> };
type Cost = { readonly server: number; readonly postgres: number };
type Subject = {
  readonly folder: string;
  readonly pids: () => Promise<readonly number[]>;
  readonly workloads: Readonly<Record<string, Workload>>;
  readonly costs: Cost[];
};

const CALLERS = 64;
const USERS = 20_000;
const WARM_UP = 6;

const [pairs = '30', ...folders] = process.argv.slice(2);
const postgres = await startPostgres({
  dataFolder: mkdtempSync(join(tmpdir(), 'user-management-engine-')),
  settings: { autovacuum: 'off', max_connections: 200, checkpoint_timeout: '1h' },
});
const subjects: Subject[] = [];
for (const [index, folder] of folders.entries()) subjects.push(await open(folder, `engine_${index}`));
for (const name of Object.keys(subjects[0]?.workloads ?? {})) await compare(name);
await postgres.stop();
process.exit();

async function open(folder: string, database: string): Promise<Subject> {
  await inDatabase(postgres, `create database ${database}`);
  await inDatabase(
    { ...postgres, database },
    `create table users (id uuid primary key, email text, note text);
    insert into users select ${uuid('n')}, 'user-' || n || '@example.com', 'note ' || n
    from generate_series(0, ${USERS}) as n; analyze users`,
  );
  const settings = readSettings({
    SVC_OAUTH_ISSUER: 'https://issuer.test',
    SVC_OAUTH_JWKS_URI: 'https://issuer.test/jwks',
    SVC_OAUTH_AUDIENCE: 'users',
    SVC_POSTGRES_HOST: postgres.host,
    SVC_POSTGRES_PORT: String(postgres.port),
    SVC_POSTGRES_USER: postgres.user,
    SVC_POSTGRES_PASSWORD: 'none',
    SVC_POSTGRES_SSL_MODE: 'disable',
    SVC_POSTGRES_DB: database,
  });
  const engine: typeof Engine = await import(resolve(folder, 'lib/postgres/index.ts'));
  const { statements } = new engine.Database(settings.postgres);
  const columns = sql.raw('id, email, note, 1::bigint as version');
  const read = statements.batchedRead(
    'SELECT users',
    'uuid',
    (ids) => sql`select ${columns} from users where id = any(${ids})`,
  );
  const write = statements.batchedWrite<{ readonly id: string; readonly note: string }, unknown>(
    'UPDATE users',
    { id: 'uuid', note: 'text' },
    (given) =>
      sql`with ${given} update users set note = given.note from given where users.id = given.id returning users.id`,
  );
  const after = ({ id }: { id: string }) =>
    sql`select ${columns} from users where id > ${id}::uuid order by id limit 100`;
  const list = statements.list('SELECT users', 'list', after);
  const rows = statements.single('SELECT users', after);
  const single = statements.single(
    'SELECT users',
    ({ id }: { id: string }) => sql`select ${columns} from users where id = ${id}::uuid`,
  );
  let number = 0;
  const next = () => {
    number = (number + 7) % (USERS - 100);
    return `00000000-0000-7000-8000-${String(number).padStart(12, '0')}`;
  };
  return {
    folder,
    pids: async () => {
      const sessions = await inDatabase(
        postgres,
        `select pid from pg_stat_activity where datname = '${database}'`,
      );
      return sessions.map(({ pid }) => Number(pid));
    },
    workloads: {
      'batched-read': { count: 3000, run: () => read.run({ key: next() }) },
      'batched-write': { count: 1500, run: () => write.run({ id: next(), note: 'changed' }) },
      list: { count: 300, run: () => list.run({ id: next() }) },
      single: { count: 1500, run: () => single.run({ id: next() }) },
      'single of 100 rows': { count: 300, run: () => rows.run({ id: next() }) },
    },
    costs: [],
  };
}

async function compare(name: string): Promise<void> {
  for (const subject of subjects) {
    subject.costs.length = 0;
    for (let round = 0; round < WARM_UP; round += 1) await measure(subject, name);
  }
  for (let round = 0; round < Number(pairs); round += 1) {
    const first = round % subjects.length;
    for (const subject of [...subjects.slice(first), ...subjects.slice(0, first)])
      subject.costs.push(await measure(subject, name));
  }
  for (const { folder, costs } of subjects) {
    const parts = (['server', 'postgres'] as const).map((part) => {
      const cost = intervalOf(costs.map((one) => one[part]));
      const more = intervalOf(costs.map((one, at) => one[part] - (subjects[0]?.costs[at]?.[part] ?? 0)));
      return `${part} ${cost.median}, more ${more.median} (${more.from} to ${more.to})`;
    });
    process.stdout.write(`${name}: ${folder}: ${parts.join('; ')}\n`);
  }
}

/** Microseconds of CPU time per statement. */
async function measure({ workloads, pids }: Subject, name: string): Promise<Cost> {
  const { count, run } = workloads[name] as Workload;
  let left = count;
  const sessions = await pids();
  const [used, usedBySessions] = [process.cpuUsage(), timeOf(sessions)];
  await Promise.all(
    Array.from({ length: CALLERS }, async () => {
      for (left -= 1; left >= 0; left -= 1) await run();
    }),
  );
  const { user, system } = process.cpuUsage(used);
  return { server: (user + system) / count, postgres: (timeOf(sessions) - usedBySessions) / count };
}

/** Microseconds that these processes have run. */
function timeOf(pids: readonly number[]): number {
  return pids.reduce(
    (sum, pid) => sum + Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1000,
    0,
  );
}

/** The median, and its 95 % interval by the ranks of a binomial distribution. */
function intervalOf(values: readonly number[]) {
  const sorted = [...values].sort((one, other) => one - other);
  const half = 0.98 * Math.sqrt(sorted.length);
  const at = (rank: number) => sorted[Math.min(Math.max(Math.floor(rank), 0), sorted.length - 1)]?.toFixed(1);
  return {
    median: at(sorted.length / 2),
    from: at(sorted.length / 2 - half),
    to: at(Math.ceil(sorted.length / 2 + half)),
  };
}

function uuid(number: string): string {
  return `('00000000-0000-7000-8000-' || lpad(${number}::text, 12, '0'))::uuid`;
}
