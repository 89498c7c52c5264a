import { expect, test } from 'vitest';
import { faultsOf } from './faults.ts';
import { renderWith } from './overlays.ts';
import type { Resource } from './render.ts';

const resources = renderWith(['maintenance-job', 'release'], 'production-migrated-by-job');
const find = (kind: string): Resource => resources.find((resource) => resource.kind === kind) ?? {};

test('with the component, a CronJob cleans up every ten minutes, one at a time, in the same way as the migration', () => {
  const { schedule, concurrencyPolicy, jobTemplate } = find('CronJob').spec;
  const [cleanup, migration] = [jobTemplate.spec.template, find('Job').spec.template];
  const [container] = migration.spec.containers;

  expect(resources.flatMap(faultsOf)).toEqual([]);
  expect([schedule, concurrencyPolicy]).toEqual(['*/10 * * * *', 'Forbid']);
  expect(cleanup.spec).toEqual({
    ...migration.spec,
    containers: [{ ...container, name: 'maintenance', args: ['/app/maintain.mjs'] }],
  });
});

test('the network policy allows its connections, and no traffic reaches it', () => {
  const { labels } = find('CronJob').spec.jobTemplate.spec.template.metadata;

  expect(labels).toMatchObject(find('NetworkPolicy').spec.podSelector.matchLabels);
  expect(labels).not.toMatchObject(find('Service').spec.selector);
});
