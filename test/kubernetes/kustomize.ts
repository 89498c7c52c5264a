import { execFileSync, spawnSync } from 'node:child_process';
import { parseAllDocuments } from 'yaml';
import type { Resource } from './render.ts';

/** If kubectl is installed, its result must equal the rendering of the tests. */
export const hasKubectl = spawnSync('kubectl', ['version', '--client']).status === 0;

/** The result of `kubectl kustomize`, without the hash at the end of the settings' name, in the order of names. */
export function kustomize(folder: string): readonly Resource[] {
  const output = execFileSync('kubectl', ['kustomize', folder], { encoding: 'utf8' });
  const withoutHash = output.replace(/(user-management-service(?:-relay)?-settings)-[a-z0-9]{10}\b/g, '$1');
  return byName(parseAllDocuments(withoutHash).map((document) => document.toJS()));
}

/** The resources that commands of a page create, in a folder. The API server is not asked. */
export function createdBy(commands: string, cwd: string): readonly Resource[] {
  const kubectl = 'kubectl() { echo ---; command kubectl "$@" --dry-run=client --output=yaml; }\n';
  const output = execFileSync('sh', ['-eu', '-c', kubectl + commands], { cwd, encoding: 'utf8' });
  return parseAllDocuments(output).map((document) => document.toJS());
}

export function byName(resources: readonly Resource[]): readonly Resource[] {
  const nameOf = ({ kind, metadata }: Resource) => `${kind} ${metadata.name}`;
  return resources.toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)));
}
