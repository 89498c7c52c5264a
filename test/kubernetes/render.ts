import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';

/** A Kubernetes resource or a part of one. Its shape is in a schema, not in a type. */
// biome-ignore lint/suspicious/noExplicitAny: to look into it needs no type, faultsOf() finds what does not fit
export type Resource = Record<string, any>;

interface Kustomization {
  readonly resources?: readonly string[];
  readonly components?: readonly string[];
  readonly configMapGenerator?: readonly Literals[];
  readonly patches?: readonly { readonly target: Target; readonly patch: string }[];
  readonly namespace?: string;
  readonly images?: readonly { readonly name: string; readonly newName: string; readonly newTag: string }[];
}

/** Regular expressions. */
interface Target {
  readonly kind: string;
  readonly name?: string;
}

interface Literals {
  readonly name: string;
  readonly behavior?: 'merge';
  readonly literals: readonly string[];
}

interface Operation {
  readonly op: 'add' | 'replace' | 'test';
  readonly path: string;
  readonly value: unknown;
}

/** A folder of this repository at a commit, as Kustomize fetches it. Here it is the folder of the working tree. */
const REMOTE = /^https:\/\/git\.example\.com\/user-management-service\.git\/\/|\?ref=.*$/g;

/**
 * The result of `kubectl kustomize` for a folder, so that the tests need no kubectl. Supports the part of Kustomize
 * that is used here. Two things differ: ConfigMaps have no hash at the end of their names, and the order of resources.
 * Throws at anything else in a kustomization.
 */
export function render(folder: string, given: readonly Resource[] = []): readonly Resource[] {
  const { resources = [], components = [], configMapGenerator = [], ...rest } = read(folder);
  const { patches = [], namespace, images = [], ...unknown } = rest;
  if (Object.keys(unknown).length > 0) throw new Error(`${folder} contains ${Object.keys(unknown)}`);

  const within = (name: string) =>
    name.startsWith('https:') ? name.replace(REMOTE, '') : join(folder, name);
  let all = [...given, ...resources.flatMap((name) => resourcesAt(within(name)))];
  for (const literals of configMapGenerator) all = withSettings(all, literals);
  for (const name of components) all = [...render(within(name), all)];
  for (const { target, patch } of patches) replaceIn(all, target, parse(patch));
  for (const resource of all) {
    if (namespace && resource.kind !== 'Namespace') resource.metadata.namespace = namespace;
    const template = resource.spec?.template ?? resource.spec?.jobTemplate?.spec.template;
    for (const container of template?.spec.containers ?? []) {
      const image = images.find(({ name }) => name === container.image);
      if (image) container.image = `${image.newName}:${image.newTag}`;
    }
  }
  return all;
}

function read(folder: string): Kustomization {
  const { apiVersion, kind, ...asked } = parse(readFileSync(join(folder, 'kustomization.yaml'), 'utf8'));
  if (!apiVersion || !/^(Kustomization|Component)$/.test(kind))
    throw new Error(`${folder} is not a kustomization`);
  return asked;
}

function resourcesAt(path: string): readonly Resource[] {
  if (existsSync(join(path, 'kustomization.yaml'))) return render(path);
  return [parse(readFileSync(path, 'utf8'))];
}

function withSettings(all: Resource[], { name, behavior, literals }: Literals): Resource[] {
  const data = Object.fromEntries(literals.map((literal) => literal.split(/=(.*)/s).slice(0, 2)));
  const there = all.find(({ kind, metadata }) => kind === 'ConfigMap' && metadata.name === name);
  if ((behavior === 'merge') !== Boolean(there)) throw new Error(`${name} is there already, or is not`);
  if (!there) return [...all, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name }, data }];
  Object.assign(there.data, data);
  return all;
}

function replaceIn(
  all: readonly Resource[],
  { kind, name = '.*' }: Target,
  operations: readonly Operation[],
): void {
  const kinds = new RegExp(`^(?:${kind}) (?:${name})$`);
  const targets = all.filter((resource) => kinds.test(`${resource.kind} ${resource.metadata.name}`));
  for (const target of targets) {
    for (const { op, path, value } of operations) {
      const steps = path.split('/').slice(1);
      const last = steps.pop() ?? '';
      const place = steps.reduce<Resource | undefined>((inner, step) => inner?.[step], target);
      if (op === 'test' && place?.[last] === value) continue;
      const isThere = place?.[last] !== undefined;
      if (!place || (op === 'replace' ? !isThere : op !== 'add' || isThere))
        throw new Error(`${op} ${path} does not fit ${kind}`);
      if (last === '-') place.push(value);
      else place[last] = value;
    }
  }
}
