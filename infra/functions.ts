import { globSync } from 'node:fs';
import { join } from 'node:path';
import type { Endpoint, Route } from '../lib/endpoint.ts';

/** A function to deploy: the endpoint's route, and the file that exports it and its `handler`. */
export type Function = { readonly route: Route; readonly file: string };

const root = join(import.meta.dirname, '..');

/** Every endpoint as a function, found where the endpoints are declared. */
export async function functions(): Promise<readonly Function[]> {
  const files = globSync('handlers/*/*.ts', { cwd: root }).sort();
  return Promise.all(files.map(async (file) => ({ route: await routeIn(file), file })));
}

async function routeIn(file: string): Promise<Route> {
  const exported: Record<string, Partial<Endpoint>> = await import(join(root, file));
  const endpoint = Object.values(exported).find(({ route }) => route !== undefined);
  if (!endpoint?.route) throw new Error(`${file} exports no endpoint`);
  return endpoint.route;
}
