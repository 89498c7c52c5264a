import { describe, expect, test } from 'vitest';
import { overlays } from './overlays.ts';

describe.each(overlays)('the overlay $name', ({ resources, one, pods, settings }) => {
  test('meets the restricted pod security standard, with a read-only file system and no token', () => {
    expect(one('Namespace').metadata.labels).toEqual({ 'pod-security.kubernetes.io/enforce': 'restricted' });
    for (const { spec } of pods) {
      expect(spec).toMatchObject({
        automountServiceAccountToken: false,
        enableServiceLinks: false,
        securityContext: {
          runAsNonRoot: true,
          runAsUser: 65532,
          runAsGroup: 65532,
          seccompProfile: { type: 'RuntimeDefault' },
        },
      });
      expect(Object.keys(spec).filter((field) => /^host|^initContainers/.test(field))).toEqual([]);
      expect(spec.volumes).toEqual([]);
      for (const { securityContext } of spec.containers) {
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        });
      }
    }
  });

  test('reads the user and the password of PostgreSQL from a secret that it does not contain', () => {
    const from = (key: string) => ({ secretKeyRef: { name: 'user-management-service-postgres', key } });

    expect(resources.map(({ kind }) => kind)).not.toContain('Secret');
    expect(Object.keys(one('ConfigMap').data).filter((name) => /USER|PASSWORD/.test(name))).toEqual([]);
    for (const { spec } of pods) {
      expect(spec.containers[0].env).toEqual([
        { name: 'SVC_POSTGRES_USER', valueFrom: from('username') },
        { name: 'SVC_POSTGRES_PASSWORD', valueFrom: from('password') },
      ]);
    }
  });

  test('allows every pod only the connections that its settings name, and connections to one port', () => {
    const { podSelector, ingress, egress, policyTypes } = one('NetworkPolicy').spec;
    const { OTEL_EXPORTER_OTLP_ENDPOINT: collector = 'http://nowhere:4318' } = one('ConfigMap').data;
    const open = egress.flatMap(({ ports }: { ports: { port: number }[] }) => ports.map(({ port }) => port));

    for (const { metadata } of pods) expect(metadata.labels).toMatchObject(podSelector.matchLabels);
    expect(policyTypes).toEqual(['Ingress', 'Egress']);
    const callers = { matchLabels: { 'user-management-service/access': 'allowed' } };
    expect(ingress).toEqual([{ from: [{ namespaceSelector: callers }], ports: [{ port: 'http' }] }]);
    expect(new Set(open)).toEqual(
      new Set([53, settings.postgres.servers[0].port, portOf(settings.oauth.jwksUri), portOf(collector)]),
    );
  });
});

function portOf(address: string): number {
  const { port, protocol } = new URL(address);
  return Number(port) || (protocol === 'https:' ? 443 : 80);
}
