import { expect, test } from 'vitest';
import { readSettings } from '../../lib/settings/settings.ts';
import { faultsOf } from './faults.ts';
import { finderIn, folder, renderWith } from './overlays.ts';
import { render } from './render.ts';

const resources = renderWith(['prometheus']);
const find = finderIn(resources);

test('with the component, metrics are on a port of their own, which the settings open', () => {
  const { template } = find('Deployment').spec;
  const { data } = find('ConfigMap', 'user-management-service-settings');
  const settings = readSettings({ ...data, SVC_POSTGRES_USER: 'x', SVC_POSTGRES_PASSWORD: 'x' });

  expect(resources.flatMap(faultsOf)).toEqual([]);
  expect(settings.otel).toMatchObject({ enabled: true, metricsExporter: 'prometheus' });
  expect(template.spec.containers[0].ports).toEqual([
    { name: 'http', containerPort: 8000 },
    { name: 'metrics', containerPort: Number(data.OTEL_EXPORTER_PROMETHEUS_PORT) },
  ]);
  expect(template.metadata.annotations).toEqual({
    'prometheus.io/scrape': 'true',
    'prometheus.io/port': data.OTEL_EXPORTER_PROMETHEUS_PORT,
    'prometheus.io/path': '/metrics',
  });
});

test('only allowed namespaces can connect to that port, and to no other', () => {
  const { spec } = find('NetworkPolicy', 'user-management-service-metrics');
  const { labels } = find('Deployment').spec.template.metadata;

  expect(labels).toMatchObject(spec.podSelector.matchLabels);
  expect(spec.ingress).toEqual([
    {
      from: [{ namespaceSelector: { matchLabels: { 'user-management-service/metrics': 'allowed' } } }],
      ports: [{ port: 'metrics' }],
    },
  ]);
});

test('the PodMonitor selects the pods and the port', () => {
  const [monitor] = render(`${folder}/components/pod-monitor`);
  const { labels } = find('Deployment').spec.template.metadata;

  expect(labels).toMatchObject(monitor?.spec.selector.matchLabels);
  expect(monitor?.spec.podMetricsEndpoints).toEqual([{ port: 'metrics' }]);
});
