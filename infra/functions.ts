import { globSync } from 'node:fs';
import { join } from 'node:path';
import { endpoints } from '../handlers/index.ts';
import type { Route } from '../lib/endpoint/route.ts';
import type * as service from '../lib/service.ts';

/**
 * A function to deploy: its name, the source text of the module that exports its `handler`, and its route. The function for
 * requests without a route takes those that no other function takes.
 */
export type DeployedFunction = {
  readonly operationId: string;
  readonly module: string;
  readonly route?: Route;
  readonly invokedBy: 'request' | 'schedule' | 'deployment';
  /** Whether it connects to PostgreSQL, and therefore needs the secret. */
  readonly reachesDatabase: boolean;
};

const root = join(import.meta.dirname, '..');

/** What composes the part of the service that a route needs. A function contains no other part. */
const COMPOSITIONS = {
  nothing: 'composeBase',
  readiness: 'composeProbes',
  users: 'composeUsers',
  changes: 'composeChanges',
} as const satisfies Record<Route['needs'], keyof typeof service>;

/**
 * Every endpoint as a function; the function for requests that no endpoint serves; the cleanup; and the migrations. Paths
 * in their modules begin at the root of the project.
 */
export async function functions(): Promise<readonly DeployedFunction[]> {
  const files = globSync('handlers/*/*.ts', { cwd: root }).sort();
  const declared = await Promise.all(files.map(async (file) => ({ file, exports: await exportsOf(file) })));
  const deployed = endpoints.map(({ route }) => {
    const { operationId, needs } = route;
    const home = declared.find(({ exports }) => exports[operationId]?.route === route);
    if (!home) throw new Error(`no file in handlers/ exports the endpoint ${operationId} by its name`);
    const compose = COMPOSITIONS[needs];
    const module = `import { ${operationId} } from './${home.file}';
import { lambda } from './lib/lambda.ts';
import { ${compose} } from './lib/service.ts';
export const handler = lambda(${operationId}, ${compose});`;
    return {
      operationId,
      module,
      route,
      invokedBy: 'request',
      reachesDatabase: needs !== 'nothing',
    } as const;
  });
  return [
    ...deployed,
    { ...handlerOf('unmatched'), invokedBy: 'request', reachesDatabase: false },
    { ...handlerOf('maintain'), invokedBy: 'schedule', reachesDatabase: true },
    { ...handlerOf('migrate'), invokedBy: 'deployment', reachesDatabase: true },
  ];
}

function handlerOf(operationId: string) {
  return { operationId, module: `export { handler } from './handlers/${operationId}.ts';` };
}

async function exportsOf(file: string): Promise<Readonly<Record<string, { readonly route?: Route }>>> {
  return import(join(root, file));
}
