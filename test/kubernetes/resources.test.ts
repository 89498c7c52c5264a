import { globSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { faultsOf } from './faults.ts';
import { byName, hasKubectl, kustomize } from './kustomize.ts';
import { folder, overlays } from './overlays.ts';
import { render } from './render.ts';

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

    test.runIf(hasKubectl)('equals the result of Kustomize', () => {
      expect(kustomize(`${folder}/overlays/${name}`)).toEqual(byName(resources));
    });
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
