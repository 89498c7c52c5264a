import { describe, expect, test } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import { overlays } from './overlays.ts';
import type { Resource } from './render.ts';

/** Seconds after the drain within which the process has ended. */
const CLOSING = 2;

describe.each(overlays)('the overlay $name', ({ one, deployment, pod, container, migration, settings }) => {
  test('routes all traffic to the pods of the deployment, and none to the migration', () => {
    const { labels } = pod.metadata;

    expect(deployment.spec.selector.matchLabels).toEqual(labels);
    expect(one('Service').spec).toEqual({
      selector: labels,
      ports: [{ name: 'http', port: 80, targetPort: 'http' }],
    });
    if (migration) expect(migration.spec.template.metadata.labels).not.toMatchObject(labels);
  });

  test('has the disruption budget, spread and scaling of the pods of the deployment', () => {
    const { labels } = pod.metadata;
    const { apiVersion, kind, metadata } = deployment;

    expect(one('PodDisruptionBudget').spec).toMatchObject({
      maxUnavailable: 1,
      selector: { matchLabels: labels },
    });
    expect(
      pod.spec.topologySpreadConstraints.map(({ topologyKey, labelSelector }: Resource) => [
        topologyKey,
        labelSelector,
      ]),
    ).toEqual([
      ['topology.kubernetes.io/zone', { matchLabels: labels }],
      ['kubernetes.io/hostname', { matchLabels: labels }],
    ]);
    expect(one('HorizontalPodAutoscaler').spec.scaleTargetRef).toEqual({
      apiVersion,
      kind,
      name: metadata.name,
    });
    expect(deployment.spec.replicas).toBeUndefined();
  });

  test('has probes at the paths where the service serves them', () => {
    const { ports, startupProbe, livenessProbe, readinessProbe } = container;
    const paths = endpoints.map(({ route }) => route.path);

    expect(ports).toEqual([{ name: 'http', containerPort: settings.port }]);
    expect([startupProbe, livenessProbe, readinessProbe].map(({ httpGet }) => httpGet)).toEqual([
      { path: '/health', port: 'http' },
      { path: '/health', port: 'http' },
      { path: '/ready', port: 'http' },
    ]);
    expect(paths).toEqual(expect.arrayContaining(['/health', '/ready']));
    // /ready responds within a second.
    expect(readinessProbe.timeoutSeconds).toBeGreaterThan(1);
  });

  test('gives a pod exactly the time of its longest shutdown', () => {
    const { readinessDelay, drainTimeout, serverTimeout } = settings.shutdown;
    const { seconds } = container.lifecycle.preStop.sleep;

    expect(pod.spec.terminationGracePeriodSeconds).toBe(seconds + readinessDelay + drainTimeout + CLOSING);
    expect(serverTimeout).toBeUndefined();
  });
});

describe.each(overlays.filter(({ isProduction }) => isProduction))(
  'the overlay $name',
  ({ one, deployment, pod, container, settings }) => {
    test('has pods that serve until no balancer sends requests to them', () => {
      const { periodSeconds, failureThreshold, timeoutSeconds } = container.readinessProbe;
      const untilUnready = periodSeconds * failureThreshold + timeoutSeconds;
      const { readinessDelay, drainTimeout } = settings.shutdown;

      expect(readinessDelay).toBeGreaterThan(untilUnready);
      expect(pod.spec.terminationGracePeriodSeconds).toBeGreaterThan(drainTimeout + untilUnready);
    });

    test('always has more than one replica', () => {
      const { minReplicas, maxReplicas } = one('HorizontalPodAutoscaler').spec;

      expect(minReplicas).toBeGreaterThanOrEqual(2);
      expect(maxReplicas).toBeGreaterThan(minReplicas);
      expect(deployment.spec.strategy.rollingUpdate).toEqual({ maxSurge: 1, maxUnavailable: 0 });
    });
  },
);
