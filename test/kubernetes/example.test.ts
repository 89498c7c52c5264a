import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { alarms, USUAL } from '../../infra/observability/alarms.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { blocksOf } from '../stage/page-blocks.ts';
import { faultsOf } from './faults.ts';
import { byName, createdBy, hasKubectl, kustomize } from './kustomize.ts';
import { finderIn, folder, renderWith } from './overlays.ts';
import { type Resource, render } from './render.ts';

const EXAMPLE = `${folder}/examples/production`;
const resources = render(EXAMPLE);
const find = finderIn(resources);
const pod: Resource = find('Deployment').spec.template;
const [container] = pod.spec.containers;
const job = find('Job', 'user-management-service-migration-argo-cd');
const { data } = find('ConfigMap', 'user-management-service-settings');

/** Resources of operators, whose schemas are not those of Kubernetes. */
const OF_OPERATORS = /^(ServiceMonitor|PrometheusRule|HTTPRoute)$/;

const [fetched = '', copied = '', create = '', apply] = blocksOf('infra/kubernetes/README.md', 'Apply', 4);

const scratch = mkdtempSync(join(tmpdir(), 'user-management-example-'));
afterAll(() => rmSync(scratch, { recursive: true }));

describe('a folder outside of the clone', () => {
  test.runIf(hasKubectl)('is built from a base that Kustomize fetches', () => {
    const repository = join(scratch, 'repository');
    cpSync(folder, join(repository, folder), { recursive: true });
    const git = (...words: string[]) => execFileSync('git', words, { cwd: repository, stdio: 'ignore' });
    git('init');
    git('add', '.');
    git('-c', 'user.name=test', '-c', 'user.email=test@example.com', 'commit', '-m', 'all');

    const copy = join(scratch, 'fetched');
    cpSync(EXAMPLE, copy, { recursive: true });
    const env = { ...process.env, OVERLAY: copy, REPOSITORY: `file://${repository}` };
    execFileSync('sh', ['-eu', '-c', fetched], { cwd: repository, env });

    expect(kustomize(copy)).toEqual(byName(resources));
  });

  test.runIf(hasKubectl)('is built from a copy of the base', () => {
    const cwd = join(scratch, 'copied');
    const copy = join(cwd, 'production');
    cpSync(folder, join(cwd, 'kubernetes'), { recursive: true });
    cpSync(EXAMPLE, copy, { recursive: true });
    execFileSync('sh', ['-eu', '-c', copied], { cwd, env: { ...process.env, OVERLAY: copy } });

    expect(kustomize(copy)).toEqual(byName(resources));
  });

  test.runIf(hasKubectl)('has the Namespace, Secret and ConfigMap that the page creates', () => {
    writeFileSync(join(scratch, 'ca.crt'), '');
    const { name, namespace } = find('Deployment').metadata;
    const [postgres, authority] = ['postgres', 'authority'].map((end) => ({
      name: `${name}-${end}`,
      namespace,
    }));

    expect(apply).toBe(
      `kubectl apply -k "$OVERLAY"\nkubectl rollout status deployment/${name} --namespace ${namespace}\n`,
    );
    expect(createdBy(create, scratch)).toMatchObject([
      { kind: 'Namespace', metadata: { name: namespace } },
      {
        kind: 'Secret',
        metadata: postgres,
        data: { username: expect.any(String), password: expect.any(String) },
      },
      { kind: 'ConfigMap', metadata: authority, data: { 'ca.crt': '' } },
    ]);
  });

  test('consists of valid resources in one namespace, with the image of this version', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8'));
    const settings = readSettings({ ...data, SVC_POSTGRES_USER: 'x' });

    expect(resources.filter(({ kind }) => !OF_OPERATORS.test(kind)).flatMap(faultsOf)).toEqual([]);
    expect(new Set(resources.slice(1).map(({ metadata }) => metadata.namespace))).toEqual(
      new Set(['user-management']),
    );
    expect([container.image, job.spec.template.spec.containers[0].image]).toEqual(
      Array(2).fill(`registry.example.com/user-management-service:${version}`),
    );
    expect(settings).toMatchObject({ unknown: [], otel: { enabled: true, printsSpans: false } });
  });
});

test('the authority is trusted by every pod, from a file that is there', () => {
  for (const { spec } of [pod, job.spec.template]) {
    const { name } = spec.volumes.find(({ configMap }: Resource) => configMap);
    const mount = spec.containers[0].volumeMounts.find((one: Resource) => one.name === name);

    expect(spec.volumes).toContainEqual({ name, configMap: { name: 'user-management-service-authority' } });
    expect(data.NODE_EXTRA_CA_CERTS).toBe(`${mount.mountPath}/ca.crt`);
  }
});

test('the authority is trusted by the cleanup, too', () => {
  const rendered = renderWith(['maintenance-job', 'authority']);
  const cronJob: Resource = rendered.find(({ kind }) => kind === 'CronJob') ?? {};
  const { spec } = cronJob.spec.jobTemplate.spec.template;

  expect(spec.volumes.map(({ name }: Resource) => name)).toEqual(['authority']);
  expect(spec.containers[0].volumeMounts.map(({ name }: Resource) => name)).toEqual(['authority']);
});

test('the password is read from a file of the Secret, and a rotation needs no restart', () => {
  const { name, secret } = pod.spec.volumes.find((volume: Resource) => volume.secret);
  const mount = container.volumeMounts.find((one: Resource) => one.name === name);
  const variables = Object.fromEntries(container.env.map((one: Resource) => [one.name, one.value]));

  // A mount of a subPath would not be updated.
  expect(mount).toEqual({ name, mountPath: '/etc/user-management-service/postgres', readOnly: true });
  expect(secret).toEqual({
    secretName: 'user-management-service-postgres',
    items: [{ key: 'password', path: 'password' }],
  });
  expect(variables).toEqual({
    SVC_POSTGRES_USER: undefined,
    SVC_POSTGRES_PASSWORD_FROM: `${mount.mountPath}/password`,
  });
});

test('the migration is a hook of Argo CD after the settings and before the pods', () => {
  expect(job.metadata).toMatchObject({
    name: 'user-management-service-migration-argo-cd',
    annotations: {
      'argocd.argoproj.io/hook': 'Sync',
      'argocd.argoproj.io/hook-delete-policy': 'BeforeHookCreation',
    },
  });
  const later = resources.filter(({ metadata }) => metadata.annotations?.['argocd.argoproj.io/sync-wave']);
  expect(later.map(({ kind }) => kind)).toEqual(['Deployment', 'HorizontalPodAutoscaler']);
  expect(data.SVC_POSTGRES_MIGRATE).toBe('false');
});

test('Ingress and HTTPRoute lead to the port of the Service, and not to the probes', () => {
  const [{ port }] = find('Service').spec.ports;
  const [{ http }] = find('Ingress').spec.rules;
  const [{ matches, backendRefs }] = find('HTTPRoute').spec.rules;

  expect(http.paths).toEqual([
    {
      path: '/api/v1',
      pathType: 'Prefix',
      backend: { service: { name: 'user-management-service', port: { name: 'http' } } },
    },
  ]);
  expect([matches, backendRefs]).toEqual([
    [{ path: { type: 'PathPrefix', value: '/api/v1' } }],
    [{ name: 'user-management-service', port }],
  ]);
});

test('the policies allow the load balancer by its addresses, and the provider within the cluster', () => {
  const { ingress, podSelector } = find('NetworkPolicy', 'user-management-service-load-balancer').spec;
  const { egress } = find('NetworkPolicy', 'user-management-service-provider').spec;
  const { hostname, port } = new URL(data.SVC_OAUTH_JWKS_URI);

  expect(pod.metadata.labels).toMatchObject(podSelector.matchLabels);
  expect(ingress[0].from.every(({ ipBlock }: Resource) => /^10\..+\/20$/.test(ipBlock.cidr))).toBe(true);
  expect(ingress[0].ports).toEqual([{ port: 'http' }]);
  expect(egress[0].ports).toContainEqual({ port: Number(port) });
  expect(egress[0].to[0].namespaceSelector.matchLabels).toEqual({
    'kubernetes.io/metadata.name': hostname.split('.')[1],
  });
});

test('ServiceMonitor and PrometheusRule name the job and the alarms of the runbook', () => {
  const { jobLabel, selector, endpoints } = find('ServiceMonitor').spec;
  const { metadata, spec } = find('Service', 'user-management-service-metrics');
  const names = find('PrometheusRule').spec.groups.flatMap(({ rules }: Resource) =>
    rules.map(({ alert }: Resource) => alert),
  );

  expect(metadata.labels).toMatchObject(selector.matchLabels);
  expect(metadata.labels[jobLabel]).toBe('user-management-service');
  expect(pod.metadata.labels).toMatchObject(spec.selector);
  expect([endpoints, spec.ports[0].targetPort]).toEqual([[{ port: 'metrics' }], 'metrics']);
  expect(names).toEqual(alarms(USUAL).map(({ name }) => name));
});
