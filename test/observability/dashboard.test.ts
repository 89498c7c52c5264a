import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { METRICS } from '../../lib/observability/metric-list.ts';

type Panel = {
  readonly type: string;
  readonly title: string;
  readonly description?: string;
  readonly targets?: readonly { readonly expr: string }[];
};

const folder = join(import.meta.dirname, '../../infra/observability');
const dashboard = JSON.parse(readFileSync(join(folder, 'dashboard.json'), 'utf8'));
const panels = (dashboard.panels as readonly Panel[]).filter(({ type }) => type !== 'row');
const queries = panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr));

describe('the dashboard', () => {
  test('has a description of every panel', () => {
    expect(panels.length).toBeGreaterThan(15);
    for (const { title, description } of panels)
      expect([title, description]).toEqual([title, expect.stringMatching(/^[A-Z\d].{20,}\.$/)]);
  });

  test('selects jobs and instances in every query', () => {
    const variables = Object.fromEntries(
      dashboard.templating.list.map(({ name, ...rest }: { readonly name: string }) => [name, rest]),
    );
    expect(Object.keys(variables)).toEqual(['datasource', 'job', 'instance']);
    for (const name of ['job', 'instance']) {
      expect(variables[name]).toMatchObject({ type: 'query', multi: true, includeAll: true, allValue: '.*' });
      expect(variables[name].query).toMatch(new RegExp(`^label_values\\(\\w+\\{.*\\}, ${name}\\)$`));
    }
    const selectors = queries.flatMap((query) => query.match(/\{[^}]*\}/g) ?? []);
    expect(selectors.length).toBeGreaterThanOrEqual(queries.length);
    for (const selector of selectors) {
      expect(selector).toContain('job=~"$job"');
      expect(selector).toContain('instance=~"$instance"');
    }
  });

  test('shows every metric', () => {
    const shown = queries.join('\n');
    const hidden = Object.keys(METRICS).filter((name) => !shown.includes(name.replaceAll('.', '_')));
    expect(hidden).toEqual([]);
  });
});
