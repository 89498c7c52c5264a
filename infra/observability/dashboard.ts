import {
  type Dashboard,
  DashboardBuilder,
  DatasourceVariableBuilder,
  RowBuilder,
} from '@grafana/grafana-foundation-sdk/dashboard';
import { DataqueryBuilder } from '@grafana/grafana-foundation-sdk/prometheus';
import { PanelBuilder } from '@grafana/grafana-foundation-sdk/timeseries';
import { buckets, type MetricName, series } from './series.ts';

const RATE = '[$__rate_interval]';
const REQUESTS = 'http.server.request.duration';

type Panel = readonly [
  title: string,
  unit: string,
  ...targets: readonly (readonly [legend: string, expr: string])[],
];

const rate = (by: string, name: MetricName, ...labels: readonly string[]) =>
  `sum by (${by}) (rate(${series(name, ...labels)}${RATE}))`;
const quantile = (part: number) =>
  `histogram_quantile(${part}, sum by (le) (rate(${buckets(REQUESTS, 'http_route!~".*/changes"')}${RATE})))`;
const ofInstances = (name: MetricName, ...labels: readonly string[]) =>
  ['{{instance}}', series(name, ...labels)] as const;

/** Rows from what callers see to what lies under it. Every metric of the service is in one of the panels. */
const ROWS: readonly { readonly title: string; readonly panels: readonly Panel[] }[] = [
  {
    title: 'Callers',
    panels: [
      [
        'Requests by route',
        'reqps',
        ['{{http_request_method}} {{http_route}}', rate('http_request_method, http_route', REQUESTS)],
      ],
      [
        'Requests by status',
        'reqps',
        ['{{http_response_status_code}}', rate('http_response_status_code', REQUESTS)],
      ],
      [
        'Duration, without the changes',
        's',
        ['p50', quantile(0.5)],
        ['p95', quantile(0.95)],
        ['p99', quantile(0.99)],
      ],
      [
        'Requests answered again under their key',
        'reqps',
        ['replays', rate('instance', 'idempotency.replays')],
      ],
    ],
  },
  {
    title: 'Instances',
    panels: [
      ['Requests in flight', 'short', ofInstances('http.server.active_requests')],
      [
        'Requests refused by overloaded instances',
        'reqps',
        ['{{instance}} {{reason}}', rate('instance, reason', 'requests.refused')],
      ],
      ['Delay of the event loop, p99', 's', ofInstances('nodejs.eventloop.delay.p99')],
      ['Memory', 'bytes', ofInstances('process.memory.usage')],
      ['Drain under way for', 's', ofInstances('drain.age')],
      ['Log lines dropped', 'short', ['{{instance}}', rate('instance', 'log.lines.dropped')]],
    ],
  },
  {
    title: 'PostgreSQL',
    panels: [
      [
        'Connections',
        'short',
        ['{{instance}} {{db_client_connection_state}}', series('db.client.connection.count')],
      ],
      [
        'Statements that wait for a connection',
        'short',
        ofInstances('db.client.connection.pending_requests'),
      ],
      [
        'Statements sent again',
        'ops',
        ['{{instance}} {{reason}}', rate('instance, reason', 'statements.retried')],
      ],
    ],
  },
  {
    title: 'Identity provider',
    panels: [
      ['Age of the keys', 's', ofInstances('jwks.age')],
      ['Fetches of the keys', 'ops', ['{{outcome}}', rate('outcome', 'jwks.refreshes')]],
      ['Duration of these fetches, mean', 's', ['{{instance}}', meanOf('http.client.request.duration')]],
      ['Tokens by whether they were known', 'ops', ['{{outcome}}', rate('outcome', 'token_cache.lookups')]],
    ],
  },
  {
    title: 'Changes',
    panels: [
      ['Changes without a position', 'short', ['changes', `max(${series('changes.unnumbered')})`]],
      ['Age of the oldest of them', 's', ['age', `max(${series('changes.unnumbered.age')})`]],
      ['Requests that wait for changes', 'short', ofInstances('changes.waiting')],
    ],
  },
];

/** The dashboard for Grafana. */
export function dashboard(): Dashboard {
  const builder = new DashboardBuilder('User Management Service')
    .uid('user-management-service')
    .tags(['user-management-service'])
    .description(
      'Requests, instances, PostgreSQL, identity provider and changes of the User Management Service.',
    )
    .time({ from: 'now-1h', to: 'now' })
    .refresh('30s')
    .timezone('browser')
    .withVariable(new DatasourceVariableBuilder('datasource').label('Prometheus').type('prometheus'));
  for (const { title, panels } of ROWS) {
    builder.withRow(new RowBuilder(title));
    for (const panel of panels) builder.withPanel(panelOf(panel));
  }
  return builder.build();
}

function panelOf([title, unit, ...targets]: Panel): PanelBuilder {
  const panel = new PanelBuilder()
    .title(title)
    .unit(unit)
    .min(0)
    .span(targets.length > 1 ? 12 : 8)
    .height(8)
    .datasource({ type: 'prometheus', uid: '$' + '{datasource}' });
  for (const [legend, expr] of targets)
    panel.withTarget(new DataqueryBuilder().expr(expr).legendFormat(legend));
  return panel;
}

/** The mean duration of what a histogram measures. */
function meanOf(name: MetricName): string {
  const count = `sum by (instance) (rate(${series(name)}${RATE}))`;
  return `${count.replace('_count{', '_sum{')} / ${count}`;
}
