import { join } from 'node:path';
import type { ViteUserConfig } from 'vitest/config';
import { LEFT_OUT as LEFT_OUT_OF_CITUS } from '../citus/left-out.ts';
import { LEFT_OUT as LEFT_OUT_OF_DISTRIBUTED } from '../distributed/left-out.ts';
import { LEFT_OUT as LEFT_OUT_OF_POOLED } from '../pooled/left-out.ts';
import type { Choice } from '../stage/run-chosen.ts';
import { filesReachingPostgres, type LeftOut } from './reaching-postgres.ts';

export type { ViteUserConfig };

type Suite = Omit<Choice, 'run'> & {
  /** The command before vitest. */
  readonly prepare?: string;
  /** The command that runs vitest. */
  readonly runBy?: string;
  /** The tests that reach PostgreSQL run again, except for these. */
  readonly repeatedExcept?: LeftOut;
  /** The options of vitest that differ from those of all suites. */
  readonly tests?: NonNullable<ViteUserConfig['test']>;
};

/** The tests that need more than `npm test`. By default the files of `test/<name>/`. */
export const SUITES: Readonly<Record<string, Suite>> = {
  pooled: {
    proves: 'The tests that reach PostgreSQL pass behind PgBouncer in transaction mode.',
    needs: 'pgbouncer',
    takes: '2 minutes',
    repeatedExcept: LEFT_OUT_OF_POOLED,
    tests: {
      env: { TEST_POSTGRES_POOLER: 'transaction' },
      globalSetup: ['test/stage/postgres.ts', 'test/stage/pooled.ts'],
    },
  },
  distributed: {
    proves: 'The tests that reach PostgreSQL pass with the behaviour of a distributed engine.',
    takes: '2 minutes',
    repeatedExcept: LEFT_OUT_OF_DISTRIBUTED,
    tests: { env: { TEST_POSTGRES_ENGINE: 'distributed' } },
  },
  citus: {
    proves:
      'The tests that reach PostgreSQL pass with Citus and schema-based sharding. Directories are moved, and a worker is killed.',
    needs:
      "Citus in Debian's PostgreSQL 15, in the PostgreSQL whose programs CITUS_BIN names, or Docker (which was not tried)",
    takes: '3 to 8 minutes',
    repeatedExcept: LEFT_OUT_OF_CITUS,
    // Three nodes that start a process for each session leave no time for six files at once.
    tests: { env: { TEST_POSTGRES_ENGINE: 'citus' }, globalSetup: ['test/citus/postgres.ts'], maxWorkers: 2 },
  },
  lambda: {
    proves:
      "The functions behave like the host with AWS's runtime client and behind a pooler, and the CDK app deploys them.",
    needs: 'pgbouncer, cmake, make, g++, python3 and the npm registry',
    takes: '5 minutes',
    prepare: 'npm ci --prefix infra/lambda && npm ci --prefix test/lambda/client && tsc -p infra/lambda',
    tests: {
      include: [
        'test/parity/*.test.ts',
        'test/lambda/*.test.ts',
        'test/lambda/pooler.ts',
        'infra/lambda/*.test.ts',
      ],
      env: {
        LAMBDA_RUNTIME_CLIENT: join(
          import.meta.dirname,
          '../lambda/client/node_modules/aws-lambda-ric/index.mjs',
        ),
      },
      retry: 1,
    },
  },
  container: {
    proves: 'The image and infra/compose.yaml serve.',
    needs: 'Docker, or root on Debian',
    takes: '4 minutes',
    runBy: 'exec sh test/container/with-images.sh vitest',
    // One file at a time, because they measure the time of a start.
    tests: { globalSetup: [], fileParallelism: false, retry: 1 },
  },
  client: {
    proves:
      'The client and its examples work in Node.js 24 and 20, Bun and Deno, and so does the command users. Clients by six other generators compile and work.',
    needs: 'jq, psql, nginx, haproxy, openssl, and the npm registry for 700 MB of packages',
    takes: '4 minutes',
    prepare:
      'npm ci --prefix infra/client && npm run build --prefix infra/client && npm ci --ignore-scripts --prefix test/client/runtimes && npm ci --ignore-scripts --prefix test/client/generators && tsc -p test/client',
  },
  monitoring: {
    proves:
      'Every alarm fires when it must, and six of them at a service with a fault, with a real Prometheus.',
    needs: 'Debian',
    takes: '2 minutes',
    tests: { testTimeout: 120_000 },
  },
  browser: {
    proves: 'The documentation pages work in a real browser.',
    needs: 'chromium (apt-get install chromium)',
    takes: 'a minute',
    // Swagger UI takes long on a busy machine.
    tests: { testTimeout: 120_000 },
  },
  examples: {
    proves: 'The examples in infra/examples/ and the workflows of infra/docs/api.md work without a change.',
    needs: 'nginx and haproxy',
    takes: 'a minute',
  },
  restore: {
    proves:
      'The commands of infra/postgresql/README.md back up and restore, while users are written; those of erasure.md leave no value of a deleted user in a file, and bring one user back; a logical replica takes over; emails are compared alike in every locale, also before PostgreSQL 17; and it compiles no statement, with a million users.',
    needs: "Debian's postgresql",
    takes: '40 seconds',
    tests: {
      include: [
        'test/restore/*.test.ts',
        'test/users/email*.test.ts',
        'test/changes/set-back-sequence.test.ts',
        'test/engine/statement-costs.test.ts',
      ],
      env: { TEST_USERS: '1000000' },
      testTimeout: 180_000,
      globalSetup: ['test/restore/postgres.ts'],
    },
  },
  upgrade: {
    proves:
      '1.2.0 to 1.4.0 and this version serve with one database of a million users, created by 1.1.0, 1.3.0 and 1.4.0, and this one with the data of 1.0.0; and PostgreSQL 18 compiles no statement.',
    needs: 'a clone with its history',
    takes: '3 minutes',
    tests: {
      include: ['test/upgrade/*.test.ts', 'test/engine/statement-costs.test.ts'],
      env: { TEST_USERS: '1000000' },
      fileParallelism: false,
      testTimeout: 180_000,
      hookTimeout: 180_000,
    },
  },
  project: {
    proves:
      'A field is added as CONTRIBUTING.md says, builds of a commit are the same, npm start builds what is missing or old, no request costs a tenth more than before, each of fourteen broken lines fails a test that names it, and a row of the faults that goes wrong is reported.',
    takes: '4 minutes',
    tests: { include: ['test/{project,faults}/*.test.ts', 'test/benchmark/guard/*.test.ts'] },
  },
  accept: {
    proves: 'npm run accept passes for correct deployments, and finds more than a hundred broken ones.',
    takes: '2 minutes',
    tests: { maxConcurrency: 4 },
  },
};

/** The options of vitest for a suite. */
export function testsOf(name: string): NonNullable<ViteUserConfig['test']> {
  const { repeatedExcept, tests } = SUITES[name] as Suite;
  const repeated = repeatedExcept ? filesReachingPostgres(repeatedExcept) : [];
  return {
    include: [...repeated, `test/${name}/*.test.ts`],
    exclude: [],
    isolate: !repeatedExcept,
    ...tests,
  };
}
