import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempDisposableSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { blocksOf } from '../stage/page-blocks.ts';
import { faultsOf } from './faults.ts';
import { byName, createdBy, hasKubectl, kustomize } from './kustomize.ts';
import { finderIn, folder, renderWith } from './overlays.ts';
import { type Resource, render } from './render.ts';

const NAMES = ['prometheus', 'password-file', 'relay', 'authority', 'release'];
const resources = renderWith(NAMES);
const find = finderIn(resources);
const service = find('Deployment');
const relay = find('Deployment', 'user-management-service-relay');
const { spec, metadata } = relay.spec.template;
const [container] = spec.containers;

test('with the component, one pod relays, as restricted as the others, and a second one starts after its end', () => {
  const [api] = service.spec.template.spec.containers;

  expect(resources.flatMap(faultsOf)).toEqual([]);
  expect([relay.spec.replicas, relay.spec.strategy]).toEqual([1, { type: 'Recreate' }]);
  expect(spec.securityContext).toEqual({ ...service.spec.template.spec.securityContext, fsGroup: 65532 });
  expect(container.securityContext).toEqual(api.securityContext);
  expect(spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
  // The command stops 10 seconds after SIGTERM.
  expect(spec.terminationGracePeriodSeconds).toBeGreaterThan(10);
  expect(container.image).toMatch(/^registry\.example\.com\/user-management-users:/);
});

test('the cursor is on a volume, the secrets are in a Secret, and an authority is trusted', () => {
  const { claimName } = spec.volumes.find(({ name }: Resource) => name === 'cursor').persistentVolumeClaim;
  const mounts = container.volumeMounts.map(({ name, mountPath }: Resource) => [name, mountPath]);

  expect(find('PersistentVolumeClaim', claimName).spec.accessModes).toEqual(['ReadWriteOnce']);
  expect(mounts).toEqual([
    ['cursor', '/var/lib/relay'],
    ['authority', '/etc/user-management-service/authority'],
  ]);
  expect(container.envFrom).toEqual([
    { configMapRef: { name: 'user-management-service-relay-settings' } },
    { secretRef: { name: 'user-management-service-relay' } },
  ]);
  expect(find('ConfigMap', 'user-management-service-relay-settings').data).toEqual({
    USERS_URL: `http://${find('Service').metadata.name}`,
  });
  expect(container.env[0]).toMatchObject({ name: 'NODE_EXTRA_CA_CERTS' });
});

test('the policies let the relay reach the service, and no traffic of the service reaches the relay', () => {
  const { podSelector, egress } = find('NetworkPolicy', 'user-management-service-relay').spec;
  const { labels } = service.spec.template.metadata;
  const from = find('NetworkPolicy', 'user-management-service-from-relay').spec;

  expect(metadata.labels).toMatchObject(podSelector.matchLabels);
  expect(labels).toMatchObject(egress[0].to[0].podSelector.matchLabels);
  expect(labels).toMatchObject(from.podSelector.matchLabels);
  expect(egress[0].ports).toEqual([
    { port: service.spec.template.spec.containers[0].ports[0].containerPort },
  ]);
  expect(from.ingress).toEqual([
    { from: [{ podSelector: { matchLabels: metadata.labels } }], ports: [{ port: 'http' }] },
  ]);
  for (const kind of ['Service', 'PodDisruptionBudget']) {
    const { selector } = find(kind).spec;
    expect(metadata.labels).not.toMatchObject(selector.matchLabels ?? selector);
  }
});

test('the other resources are those without the component', () => {
  const without = renderWith(NAMES.filter((name) => name !== 'relay'));

  expect(byName(resources.filter(({ metadata: { name } }) => !/relay/.test(name)))).toEqual(byName(without));
});

test('it begins with the oldest change if the volume has no cursor, and continues otherwise', () => {
  using scratch = mkdtempDisposableSync(join(tmpdir(), 'user-management-relay-'));
  const [cursor, program] = [join(scratch.path, 'cursor'), join(scratch.path, 'users.mjs')];
  writeFileSync(program, 'console.log(JSON.stringify(process.argv.slice(2)));');
  const args = container.args.map((word: string) =>
    word.replace('/var/lib/relay/cursor', cursor).replace('/app/users.mjs', program),
  );
  const run = () => JSON.parse(spawnSync(process.execPath, args, { encoding: 'utf8' }).stdout);
  const first = run();
  writeFileSync(cursor, 'x');
  const second = run();

  expect(first).toEqual(['relay', '--cursor', cursor, '--from', 'oldest', '--parallel=8']);
  expect(second).toEqual(['relay', '--cursor', cursor, '--parallel=8']);
});

test.runIf(hasKubectl)(
  'the lines of the page add it to an overlay outside of the clone, with its setting and its Secret',
  () => {
    using scratch = mkdtempDisposableSync(join(tmpdir(), 'user-management-relay-'));
    const [create = '', lines = ''] = blocksOf('infra/docs/relay.md', 'Kubernetes', 2);
    const overlay = join(scratch.path, 'overlay');
    cpSync(folder, join(scratch.path, 'kubernetes'), { recursive: true });
    mkdirSync(overlay);
    const kustomization = { kind: 'Kustomization', namespace: 'user-management', ...parse(lines) };
    const before = ['prometheus', 'password-file'].map((name) => `../kubernetes/components/${name}`);
    kustomization.apiVersion = 'kustomize.config.k8s.io/v1beta1';
    kustomization.resources = ['../kubernetes/overlays/production'];
    kustomization.components = [...before, ...kustomization.components, '../kubernetes/components/authority'];
    writeFileSync(join(overlay, 'kustomization.yaml'), stringify(kustomization));
    const built = kustomize(overlay);
    const [secret] = createdBy(create, scratch.path);
    const { data, metadata: settings } = finderIn(built)(
      'ConfigMap',
      'user-management-service-relay-settings',
    );

    expect(built).toEqual(byName(render(overlay)));
    expect(
      Object.keys({ ...data, ...secret?.data })
        .toSorted()
        .join(),
    ).toBe(
      'USERS_CLIENT_ID,USERS_CLIENT_SECRET,USERS_RELAY_SECRET,USERS_RELAY_URL,USERS_TOKEN_URL,USERS_URL',
    );
    expect([secret?.metadata.name, secret?.metadata.namespace]).toEqual([
      container.envFrom[1].secretRef.name,
      settings.namespace,
    ]);
  },
);
