import { buckets, type MetricName, series } from './series.ts';

const DATASOURCE = { type: 'prometheus', uid: '$' + '{datasource}' };
const RATE = '[$__rate_interval]';
const REQUESTS = 'http.server.request.duration';

/** The labels that the variables of the dashboard select. */
const SELECTED = ['job=~"$job"', 'instance=~"$instance"'];

type Panel = {
  readonly title: string;
  /** For operators: the content of the panel, and how to read it. */
  readonly description: string;
  readonly unit: string;
  readonly targets: readonly (readonly [legend: string, expr: string])[];
};

const selected = (name: MetricName, ...labels: readonly string[]) => series(name, ...SELECTED, ...labels);
const rate = (by: string, name: MetricName) => `sum by (${by}) (rate(${selected(name)}${RATE}))`;
const quantile = (part: number) =>
  `histogram_quantile(${part}, sum by (le) (rate(${buckets(REQUESTS, ...SELECTED, 'http_route!~".*/changes"')}${RATE})))`;
const byInstance = (name: MetricName) => [['{{instance}}', selected(name)]] as const;
const sumByInstance = (name: MetricName) =>
  [['{{instance}}', `sum by (instance) (${selected(name)})`]] as const;

/** The rows, from callers down to PostgreSQL. Every metric of the service is in one of the panels. */
const ROWS: readonly { readonly title: string; readonly panels: readonly Panel[] }[] = [
  {
    title: 'Callers',
    panels: [
      {
        title: 'Requests by route',
        description: 'Requests per second, by method and route. Probes are not counted.',
        unit: 'reqps',
        targets: [
          ['{{http_request_method}} {{http_route}}', rate('http_request_method, http_route', REQUESTS)],
        ],
      },
      {
        title: 'Requests by status',
        description: 'Requests per second, by status. A 503 may be sent again later. A 500 is a defect.',
        unit: 'reqps',
        targets: [['{{http_response_status_code}}', rate('http_response_status_code', REQUESTS)]],
      },
      {
        title: 'Duration, without the changes',
        description:
          'Duration of requests: median, 95th and 99th percentile. Requests for changes are left out, because they may wait for a change.',
        unit: 's',
        targets: [
          ['p50', quantile(0.5)],
          ['p95', quantile(0.95)],
          ['p99', quantile(0.99)],
        ],
      },
      {
        title: 'Replays',
        description: 'Requests per second that repeated an earlier request with the same `Idempotency-Key`.',
        unit: 'reqps',
        targets: [['{{instance}}', rate('instance', 'idempotency.replays')]],
      },
    ],
  },
  {
    title: 'Instances',
    panels: [
      {
        title: 'Requests in flight',
        description: 'Requests in flight, per instance. Requests that wait for changes are not counted.',
        unit: 'short',
        targets: sumByInstance('http.server.active_requests'),
      },
      {
        title: 'Requests refused by overloaded instances',
        description:
          'Requests per second that an overloaded instance refused with 503, by caller and reason.',
        unit: 'reqps',
        targets: [
          ['{{instance}} {{caller}} {{reason}}', rate('instance, caller, reason', 'requests.refused')],
        ],
      },
      {
        title: 'Delay of the event loop, p99',
        description:
          '99th percentile of the delay of the event loop since the last export. A long delay slows down every request.',
        unit: 's',
        targets: byInstance('nodejs.eventloop.delay.p99'),
      },
      {
        title: 'Memory',
        description: 'Physical memory of the process.',
        unit: 'bytes',
        targets: byInstance('process.memory.usage'),
      },
      {
        title: 'Duration of the drain',
        description: 'Time since the drain of an instance began; 0 while there is no drain.',
        unit: 's',
        targets: byInstance('drain.age'),
      },
      {
        title: 'Log lines dropped',
        description: 'Lines per second that the reader of standard output did not accept in time.',
        unit: 'short',
        targets: [['{{instance}}', rate('instance', 'log.lines.dropped')]],
      },
    ],
  },
  {
    title: 'PostgreSQL',
    panels: [
      {
        title: 'Sessions of PostgreSQL',
        description: 'Sessions of PostgreSQL, used and idle. If all are used, statements wait.',
        unit: 'short',
        targets: [['{{instance}} {{db_client_connection_state}}', selected('db.client.connection.count')]],
      },
      {
        title: 'Statements that wait for a session',
        description: 'Number of statements that wait to be sent, per instance.',
        unit: 'short',
        targets: byInstance('db.client.connection.pending_requests'),
      },
      {
        title: 'Statements sent again',
        description: 'Statements per second that were sent again, by reason.',
        unit: 'ops',
        targets: [['{{instance}} {{reason}}', rate('instance, reason', 'statements.retried')]],
      },
    ],
  },
  {
    title: 'Identity provider',
    panels: [
      {
        title: 'Age of the keys',
        description: 'Time since the last successful fetch of the keys. It grows while fetches fail.',
        unit: 's',
        targets: byInstance('jwks.age'),
      },
      {
        title: 'Fetches of the keys',
        description: 'Fetches of the keys per second, by outcome.',
        unit: 'ops',
        targets: [['{{outcome}}', rate('outcome', 'jwks.refreshes')]],
      },
      {
        title: 'Duration of these fetches, mean',
        description: 'Mean duration of a fetch of the keys.',
        unit: 's',
        targets: [['{{instance}}', meanOf('http.client.request.duration')]],
      },
      {
        title: 'Lookups in the token cache',
        description: 'Tokens per second that the instance had already verified (`hit`), and others (`miss`).',
        unit: 'ops',
        targets: [['{{outcome}}', rate('outcome', 'token_cache.lookups')]],
      },
    ],
  },
  {
    title: 'Changes',
    panels: [
      {
        title: 'Changes without a position',
        description: 'Changes that readers cannot see yet. A read of the changes gives them positions.',
        unit: 'short',
        targets: [['changes', `max(${selected('changes.unnumbered')})`]],
      },
      {
        title: 'Age of the oldest change without a position',
        description: 'Age of the oldest change without a position; 0 if every change has one.',
        unit: 's',
        targets: [['age', `max(${selected('changes.unnumbered.age')})`]],
      },
      {
        title: 'Requests that wait for changes',
        description: 'Number of requests that wait for a change, per instance. The maximum is 1,000.',
        unit: 'short',
        targets: byInstance('changes.waiting'),
      },
    ],
  },
];

/** The dashboard for Grafana, as its JSON model (schema 42). */
export function dashboard() {
  let bottom = 0;
  const panels = ROWS.flatMap(({ title, panels }) => {
    const row = {
      type: 'row',
      title,
      collapsed: false,
      panels: [],
      gridPos: { h: 1, w: 24, x: 0, y: bottom },
    };
    const top = bottom + 1;
    bottom = top + 8 * Math.ceil(panels.length / 3);
    return [
      row,
      ...panels.map((panel, index) => panelOf(panel, 8 * (index % 3), top + 8 * Math.floor(index / 3))),
    ];
  });
  return {
    title: 'User Management Service',
    uid: 'user-management-service',
    tags: ['user-management-service'],
    description:
      'Requests, instances, PostgreSQL, identity provider and changes of the User Management Service.',
    schemaVersion: 42,
    time: { from: 'now-1h', to: 'now' },
    refresh: '30s',
    timezone: 'browser',
    // The dashboard is generated. A change made in Grafana would be lost at the next import.
    editable: false,
    templating: {
      list: [
        { type: 'datasource', name: 'datasource', label: 'Prometheus', query: 'prometheus' },
        variable('job', 'Job'),
        variable('instance', 'Instance', 'job=~"$job"'),
      ],
    },
    panels,
  };
}

/** A variable with the values of a label, of which any number can be selected. */
function variable(label: string, title: string, ...labels: readonly string[]) {
  return {
    type: 'query',
    name: label,
    label: title,
    datasource: DATASOURCE,
    query: `label_values(${series('process.memory.usage', ...labels)}, ${label})`,
    // When the time range changes, and in alphabetical order.
    refresh: 2,
    sort: 1,
    multi: true,
    includeAll: true,
    allValue: '.*',
    current: { text: ['All'], value: ['$__all'] },
  };
}

function panelOf({ title, description, unit, targets }: Panel, x: number, y: number) {
  return {
    type: 'timeseries',
    title,
    description,
    gridPos: { h: 8, w: 8, x, y },
    datasource: DATASOURCE,
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    targets: targets.map(([legendFormat, expr], index) => ({
      refId: String.fromCharCode(65 + index),
      expr,
      legendFormat,
    })),
  };
}

/** The mean of a histogram. */
function meanOf(name: MetricName): string {
  const count = rate('instance', name);
  return `${count.replace('_count{', '_sum{')} / ${count}`;
}
