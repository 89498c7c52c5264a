import { buckets, series } from './series.ts';

/** The durations of the alarms, in Prometheus' form, and ages in seconds. A test shortens them. */
export type Patience = {
  /** The window of rates. */
  readonly window: string;
  /** How long a condition that may end by itself must last. */
  readonly hold: string;
  /** How long an instance may be unavailable. */
  readonly down: string;
  readonly keysAge: number;
  readonly unnumberedAge: number;
  readonly drainAge: number;
};

/**
 * Three refreshes of the keys; three cleanups, which also give positions to changes; two thirds of the drain timeout.
 */
export const USUAL: Patience = {
  window: '5m',
  hold: '5m',
  down: '1m',
  keysAge: 900,
  unnumberedAge: 1800,
  drainAge: 20,
};

/** Where operators read the `README.md` of this folder. Set your own address. */
export const RUNBOOK_URL = 'https://git.example.com/user-management-service/infra/observability/README.md';

/** An alarm. The `README.md` of this folder has a section with its name. */
export type Alarm = {
  readonly name: string;
  readonly severity: 'critical' | 'warning';
  /** Not empty while the alarm's condition holds. */
  readonly expr: string;
  readonly for: string;
  readonly summary: string;
};

const REQUESTS = 'http.server.request.duration';

/** Every alarm. A counter that has just begun has no rate, so its series is checked, too. */
export function alarms({ window, hold, down, keysAge, unnumberedAge, drainAge }: Patience): readonly Alarm[] {
  const answered = (status: string) => `sum by (job) (rate(${series(REQUESTS, status)}[${window}]))`;
  const defects = series(REQUESTS, 'http_response_status_code="500"');
  return [
    {
      name: 'UserManagementInstanceDown',
      severity: 'critical',
      expr: 'up{job=~"(.*/)?user-management-service"} == 0',
      for: down,
      summary: 'An instance cannot be asked for its metrics.',
    },
    {
      name: 'UserManagementRequestsFail',
      severity: 'critical',
      expr: `${answered('http_response_status_code="503"')} / ${answered('http_response_status_code!=""')} > 0.02`,
      for: hold,
      summary: 'More than 2 % of the requests are answered with 503.',
    },
    {
      name: 'UserManagementDefect',
      severity: 'critical',
      expr: `sum by (job) (increase(${defects}[${window}])) > 0 or sum by (job) (${defects} unless ${defects} offset ${window}) > 0`,
      for: '0s',
      summary:
        'A request was answered with 500: a defect of the service, or a database that is not as it should be.',
    },
    {
      name: 'UserManagementSlow',
      severity: 'warning',
      expr: `histogram_quantile(0.99, sum by (job, le) (rate(${buckets(REQUESTS, 'http_route!~".*/changes"')}[${window}]))) > 1`,
      for: hold,
      summary: 'One request in a hundred takes longer than a second.',
    },
    {
      name: 'UserManagementConnectionsExhausted',
      severity: 'warning',
      // Mean wait per request in seconds (Little's law). In a busy instance, some statements always wait briefly.
      expr: `sum by (job, instance) (${series('db.client.connection.pending_requests')}) / sum by (job, instance) (rate(${series(REQUESTS)}[${window}])) > 0.1`,
      for: hold,
      summary: 'Statements wait longer than a tenth of a second for a session of PostgreSQL.',
    },
    {
      name: 'UserManagementOverloaded',
      severity: 'warning',
      expr: `sum by (job, instance) (rate(${series('requests.refused')}[${window}])) > 0`,
      for: '0s',
      summary: 'An instance has more to do than it can, and refuses requests.',
    },
    {
      name: 'UserManagementKnownCallersRefused',
      severity: 'critical',
      expr: `sum by (job, instance) (rate(${series('requests.refused', 'caller="known",reason!="caller_left"')}[${window}])) > 0`,
      for: '0s',
      summary: 'An instance refuses requests of callers that it knows by a verified token.',
    },
    {
      name: 'UserManagementKeysStale',
      severity: 'critical',
      expr: `${series('jwks.age')} > ${keysAge}`,
      for: '0s',
      summary: "The identity provider's keys could not be fetched for a while.",
    },
    {
      name: 'UserManagementChangesUnnumbered',
      severity: 'warning',
      expr: `max by (job) (${series('changes.unnumbered.age')}) > ${unnumberedAge}`,
      for: '0s',
      summary: "Changes of users are in no reader's feed yet.",
    },
    {
      name: 'UserManagementLogLinesDropped',
      severity: 'warning',
      expr: `sum by (job, instance) (increase(${series('log.lines.dropped')}[${window}])) > 0`,
      for: '0s',
      summary: 'The reader of standard output is too slow: lines of the log are lost.',
    },
    {
      name: 'UserManagementDrainTimeout',
      severity: 'warning',
      expr: `${series('drain.age')} > ${drainAge} and on (job, instance) sum by (job, instance) (${series('http.server.active_requests')}) > 0`,
      for: '0s',
      summary: 'An instance that shuts down is about to cancel requests.',
    },
  ];
}

/** SVC_CHANGES_RETENTION in days, unless it is set. */
const USUAL_RETENTION_DAYS = 30;

/**
 * The alarms of `users relay`, in LogQL, for the ruler of Loki: the relay has no metrics, and writes a line every 10 seconds.
 * A relay that ends again and again may write no such line at all.
 */
export const RELAY_ALARMS: readonly Alarm[] = [
  {
    name: 'UserManagementRelayBehind',
    severity: 'critical',
    expr: `max by (app) (max_over_time({app="user-management-service"} |= "relay_progress" | json lag_s="lag_s" | unwrap lag_s [5m])) > ${(USUAL_RETENTION_DAYS * 24 * 3600) / 2}`,
    for: '0s',
    summary: 'The oldest change that is not delivered is half as old as changes become.',
  },
  {
    name: 'UserManagementRelaySilent',
    severity: 'critical',
    expr: 'absent_over_time({app="user-management-service"} |= "relay_progress" [5m])',
    for: '10m',
    summary: 'The relay does not run.',
  },
];
