import type { TestProject } from 'vitest/node';
import type { PostgresServer } from '../stage/rows.ts';
import { startNodes } from './nodes.ts';

/** Gives all tests a coordinator and two workers of Citus. */
export default async function (project: TestProject): Promise<() => Promise<void>> {
  const nodes = await startNodes();
  const servers = nodes.map(({ host, port, user, password, database }) => ({
    host,
    port,
    user,
    password,
    database,
  }));
  project.provide('postgres', servers[0] as PostgresServer);
  project.provide('citus', servers);
  return async () => {
    for (const node of nodes) await node.stop();
  };
}
