import { mkdtemp, realpath, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { startPostgres } from '../../host/development/postgres.ts';
import { hastySettings } from './postgres.ts';

/** A PostgreSQL of a test's own that can be frozen: connections stay open, new ones are accepted, nothing answers. */
export async function startFreezablePostgres() {
  const dataFolder = await mkdtemp(join(tmpdir(), 'user-management-frozen-'));
  const server = await startPostgres({ dataFolder, settings: hastySettings });
  const name = server.database;
  let frozen: readonly number[] = [];

  const thaw = () => {
    for (const processId of frozen) process.kill(processId, 'SIGCONT');
    frozen = [];
  };

  return {
    ...server,
    name,
    /** Stops the main process and all sessions; that of the administrator ends first. */
    async freeze(): Promise<void> {
      const client = new pg.Client({ ...server, ssl: false });
      await client.connect();
      const { rows } = await client.query(
        `SELECT pid FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
      );
      await client.end();
      frozen = [server.processId, ...rows.map(({ pid }) => pid)];
      for (const processId of frozen) process.kill(processId, 'SIGSTOP');
    },
    thaw,
    async stop(): Promise<void> {
      thaw();
      await server.stop();
      // Where the server could not reach the folder, a link in its place leads to the data.
      await rm(await realpath(dataFolder), { recursive: true });
      await rm(dataFolder, { recursive: true, force: true });
    },
  };
}
