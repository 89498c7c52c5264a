import { execFileSync } from 'node:child_process';
import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { parseAllDocuments } from 'yaml';
import { faultsOf } from './faults.ts';
import { folder, overlays } from './overlays.ts';
import { type Resource, render } from './render.ts';

const { version } = JSON.parse(readFileSync('package.json', 'utf8'));

describe.each(overlays)(
  'the overlay $name',
  ({ name, isProduction, resources, one, pods, settings, container, migration }) => {
    test('consists of valid resources of the API, in its namespace', () => {
      const namespaces = resources.map(({ kind, metadata }) =>
        kind === 'Namespace' ? metadata.name : metadata.namespace,
      );

      expect(resources.flatMap(faultsOf)).toEqual([]);
      expect([...new Set(namespaces)]).toEqual([one('Namespace').metadata.name]);
    });

    test('gives the service only settings that it knows and accepts', () => {
      expect(settings.unknown).toEqual([]);
      expect(settings.environment).toBe(isProduction ? 'production' : 'development');
    });

    test('runs one image, with the same settings and as the same account in every pod', () => {
      for (const { spec } of pods) {
        expect(spec.serviceAccountName).toBe(one('ServiceAccount').metadata.name);
        expect(spec.containers).toEqual([
          expect.objectContaining({
            image: container.image,
            envFrom: [{ configMapRef: { name: one('ConfigMap').metadata.name } }],
            resources: {
              requests: { cpu: expect.any(String), memory: expect.any(String) },
              limits: { memory: expect.any(String) },
            },
          }),
        ]);
      }
      if (isProduction) expect(container.image.split(':').at(-1)).toBe(version);
    });

    test('opens no more connections than PostgreSQL accepts, also during a rollout', () => {
      const { maxReplicas } = one('HorizontalPodAutoscaler').spec;

      expect(2 * maxReplicas * (settings.postgres.poolSize + 1)).toBeLessThanOrEqual(97);
    });

    test('runs migrations in one place', () => {
      expect(settings.postgres.migrate).toBe(migration === undefined);
      if (migration) expect(migration.spec.template.spec.containers[0].args).toEqual(['/app/migrate.mjs']);
    });

    // If kubectl is installed, its result must equal the rendering of the tests.
    if (hasKubectl()) {
      test('equals the result of Kustomize', () => {
        const output = execFileSync('kubectl', ['kustomize', `${folder}/overlays/${name}`], {
          encoding: 'utf8',
        });
        const settingsName: string = one('ConfigMap').metadata.name;
        const withoutHash = output.replace(new RegExp(`${settingsName}-[a-z0-9]{10}\\b`, 'g'), settingsName);

        expect(byName(parseAllDocuments(withoutHash).map((document) => document.toJS()))).toEqual(
          byName(resources),
        );
      });
    }
  },
);

test('every manifest is used by an overlay or a component', () => {
  const files = globSync(`${folder}/**/*.yaml`);
  const kustomizations = files.filter((file) => file.endsWith('kustomization.yaml'));
  const named = kustomizations.map((file) => readFileSync(file, 'utf8')).join();
  const names = files
    .filter((file) => !kustomizations.includes(file))
    .map((file) => file.split('/').at(-1) ?? '');

  expect(names.filter((file) => !named.includes(`- ${file}`))).toEqual([]);
});

test('an unknown field is reported', () => {
  const [deployment = {}] = render(`${folder}/base`).filter(({ kind }) => kind === 'Deployment');
  deployment.spec.template.spec.containers[0].livenesProbe = {};

  expect(faultsOf(deployment)).toEqual([
    'apps/v1 Deployment/spec/template/spec/containers/0/livenesProbe: unknown',
  ]);
});

function byName(resources: readonly Resource[]): readonly Resource[] {
  const nameOf = ({ kind, metadata }: Resource) => `${kind} ${metadata.name}`;
  return resources.toSorted((a, b) => nameOf(a).localeCompare(nameOf(b)));
}

function hasKubectl(): boolean {
  try {
    execFileSync('kubectl', ['version', '--client'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}
