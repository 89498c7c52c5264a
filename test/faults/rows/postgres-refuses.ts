import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import type { ServiceUnderFault, Stage } from '../../lab/stage/stage.ts';
import { until } from '../../stage/until.ts';
import type { Row } from '../run-row.ts';

/** Causes a refusal under a few writers in each trial, expects 503 and no exit, ends it, and expects normal service. */
async function refuse(
  { tries, claim, recovered }: Stage,
  service: ServiceUnderFault,
  bringAbout: () => Promise<() => unknown>,
): Promise<void> {
  for (const _ of tries()) {
    const load = service.startLoad(8);
    await sleep(300);
    const undo = await bringAbout();
    const caller = service.caller();
    const isRefused = async () => (await caller.read('?limit=1')).status === 503;
    await until('operations are 503', isRefused);
    const [ready, health] = await Promise.all([
      fetch(`${service.url}/ready`),
      fetch(`${service.url}/health`),
    ]);
    claim('/ready is 503 and /health is 200', ready.status === 503 && health.status === 200, ready.status);
    await undo();
    const undone = performance.now();
    await until('operations are 200', async () => (await caller.read('?limit=1')).status === 200);
    recovered((performance.now() - undone) / 1000);
    await until('/ready is 200', async () => (await fetch(`${service.url}/ready`)).ok);
    await load.stop();
    caller.close();
  }
  await service.checkBooks();
}

/** A service whose role is no superuser's, in a database of its own. */
async function startAsOwner({ postgres, startService }: Stage) {
  await postgres.query([
    'CREATE ROLE service LOGIN',
    'CREATE DATABASE owned OWNER service TEMPLATE template0',
  ]);
  return startService({ SVC_POSTGRES_USER: 'service', SVC_POSTGRES_DB: 'owned' });
}

/** Ends the service's sessions until none is left, and runs statements as the administrator. */
async function alone({ postgres }: Stage, ...statements: readonly string[]): Promise<void> {
  await until('the service has no session', async () => {
    await postgres.terminate();
    return postgres.query(statements).then(
      () => true,
      () => false,
    );
  });
  await postgres.terminate();
}

export const tooManyConnections: Row = {
  name: 'too-many-connections',
  promise: 'PostgreSQL has no connection left: 503, and service again as soon as there is one.',
  trials: 5,
  brief: 1,
  postgres: { settings: { max_connections: 20 } },
  async run(stage) {
    const service = await startAsOwner(stage);
    const { postgres } = stage;
    await refuse(stage, service, async () => {
      const taken: pg.Client[] = [];
      const take = async () => {
        const client = new pg.Client({ ...postgres, ssl: false });
        client.on('error', () => {});
        taken.push(await client.connect().then(() => client));
      };
      // Whatever the service loses is taken, until there is none for it: those in reserve are not for its role.
      await until('all are taken', async () => {
        await postgres.terminate().catch(() => 0);
        return take().then(
          () => false,
          () => true,
        );
      });
      const keep = setInterval(() => void take().catch(() => {}), 5);
      await taken[0]?.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'user-management-service'",
      );
      return async () => {
        clearInterval(keep);
        await sleep(50);
        await Promise.all(taken.map((client) => client.end()));
      };
    });
  },
};

export const accountRefused: Row = {
  name: 'account-refused',
  promise: 'PostgreSQL refuses the account of the service: 503, and service again once it does not.',
  trials: 5,
  async run(stage) {
    const service = await startAsOwner(stage);
    await refuse(stage, service, async () => {
      await alone(stage, 'ALTER ROLE service NOLOGIN');
      return () => stage.postgres.query('ALTER ROLE service LOGIN');
    });
  },
};

export const databaseMissing: Row = {
  name: 'database-missing',
  promise: 'The database is renamed: 503, and service again once it has its name back.',
  trials: 5,
  async run(stage) {
    const service = await startAsOwner(stage);
    await refuse(stage, service, async () => {
      // Else the service is back before the database is renamed, and PostgreSQL waits five seconds for it to go.
      await stage.postgres.query('ALTER DATABASE owned ALLOW_CONNECTIONS false');
      await alone(
        stage,
        'ALTER DATABASE owned RENAME TO elsewhere',
        'ALTER DATABASE elsewhere ALLOW_CONNECTIONS true',
      );
      return () => stage.postgres.query('ALTER DATABASE elsewhere RENAME TO owned');
    });
  },
};
