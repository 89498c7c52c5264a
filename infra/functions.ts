import { globSync } from 'node:fs';
import { join } from 'node:path';
import { endpoints } from '../handlers/index.ts';
import type { Route } from '../lib/endpoint/route.ts';

/**
 * A function to deploy: its name, the file that exports its `handler`, and its route. The function for requests without a
 * route takes those that no other function takes.
 */
export type DeployedFunction = {
  readonly operationId: string;
  readonly file: string;
  readonly route?: Route;
  readonly invokedBy: 'request' | 'schedule' | 'deployment';
  /** Whether it connects to PostgreSQL, and therefore needs the secret. */
  readonly reachesDatabase: boolean;
};

const root = join(import.meta.dirname, '..');

/**
 * Every endpoint as a function, in the file that declares it; the function for requests that no endpoint serves; the
 * cleanup; and the migrations.
 */
export async function functions(): Promise<readonly DeployedFunction[]> {
  const files = globSync('handlers/*/*.ts', { cwd: root }).sort();
  const declared = await Promise.all(files.map(async (file) => ({ file, exports: await exportsOf(file) })));
  const deployed = endpoints.map((endpoint) => {
    const { operationId } = endpoint.route;
    const home = declared.find(({ exports }) => exports.includes(endpoint));
    if (!home) throw new Error(`no file in handlers/ declares ${operationId}`);
    const reachesDatabase = endpoint.route.needs !== 'nothing';
    return {
      operationId,
      file: home.file,
      route: endpoint.route,
      invokedBy: 'request',
      reachesDatabase,
    } as const;
  });
  return [
    ...deployed,
    {
      operationId: 'unmatched',
      file: 'handlers/unmatched.ts',
      invokedBy: 'request',
      reachesDatabase: false,
    },
    { operationId: 'maintain', file: 'handlers/maintain.ts', invokedBy: 'schedule', reachesDatabase: true },
    { operationId: 'migrate', file: 'handlers/migrate.ts', invokedBy: 'deployment', reachesDatabase: true },
  ];
}

async function exportsOf(file: string): Promise<readonly unknown[]> {
  return Object.values(await import(join(root, file)));
}
