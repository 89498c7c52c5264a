import { METRICS } from '../lib/observability/metric-list.ts';
import { keepReadmeTable } from './readme-table.ts';

// Writes the README's table of metrics from their list; with --check it only compares.
const rows = Object.entries(METRICS).map(([name, metric]) => {
  const attributes = 'attributes' in metric ? metric.attributes : '';
  return `| \`${name}\` | ${metric.kind} | ${metric.unit} | ${attributes} | ${metric.meaning} |`;
});
keepReadmeTable('metrics', ['metric', 'kind', 'unit', 'attributes', 'meaning'], rows);
