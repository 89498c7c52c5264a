import { mkdtempDisposableSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parser } from '@grafana/lezer-logql';
import { describe, expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { alarms, RELAY_ALARMS, USUAL } from '../../infra/observability/alarms.ts';
import { SETTINGS } from '../../lib/settings/setting-table.ts';
import { promtool } from './prometheus.ts';

const OBSERVABILITY = join(import.meta.dirname, '../../infra/observability');
const RULES = join(OBSERVABILITY, 'alerts.yaml');
const OURS = 'otel_scope_name="user-management-service",instance="a"';
const REQUESTS = `http_server_request_duration_count{${OURS},http_response_status_code=`;
const PENDING = `db_client_connection_pending_requests{${OURS},db_client_connection_pool_name="postgresql"}`;

/**
 * Whether an alarm fires, the minute at which it is checked, and series per minute from 0, as promtool writes them. The
 * alarm that fires has the label `job`, if it is given.
 */
type Case = readonly [
  when: string,
  fires: boolean,
  minutes: number,
  series: Readonly<Record<string, string>>,
  job?: string,
];

const requests = (ok: string, status: string, refused: string) => ({
  [`${REQUESTS}"200"}`]: ok,
  [`${REQUESTS}"${status}"}`]: refused,
});
const bucketsOf = (within: string, all: string, route = '/api/v1/users/') => ({
  [`http_server_request_duration_bucket{${OURS},http_route="${route}",le="1"}`]: within,
  [`http_server_request_duration_bucket{${OURS},http_route="${route}",le="2.5"}`]: all,
  [`http_server_request_duration_bucket{${OURS},http_route="${route}",le="+Inf"}`]: all,
});

const refusals = (counts: string, caller = 'known') => ({
  [`requests_refused_total{${OURS},reason="no_room",caller="${caller}"}`]: counts,
});
const drainWith = (requestsInFlight: string) => ({
  [`drain_age{${OURS}}`]: '0 25',
  [`http_server_active_requests{${OURS},http_request_method="GET"}`]: requestsInFlight,
});

const CASES: Readonly<Record<string, readonly Case[]>> = {
  UserManagementInstanceDown: [
    ['an instance is away for two minutes', true, 5, { 'up{job="user-management-service"}': '1 1 1 0 0 0' }],
    ['that of a PodMonitor is', true, 5, { 'up{job="users/user-management-service"}': '0+0x9' }],
    ['another job is away', false, 5, { 'up{job="other"}': '0+0x9' }],
  ],
  UserManagementRequestsFail: [
    ['3 % are 503 for ten minutes', true, 15, requests('0+97x20', '503', '0+3x20')],
    ['1 % is', false, 15, requests('0+99x20', '503', '0+1x20')],
    ['3 % are, for a minute', false, 12, requests('0+97x20', '503', '0+0x10 3 3 3')],
    [
      'production is at 100 %, beside a staging with 60 times its traffic',
      true,
      15,
      {
        [`${REQUESTS}"503",job="production"}`]: '0+10x20',
        [`${REQUESTS}"200",job="staging"}`]: '0+600x20',
      },
      'production',
    ],
    ['requests are refused for their values', false, 15, requests('0+50x20', '422', '0+50x20')],
  ],
  UserManagementDefect: [
    ['the first 500', true, 8, requests('0+97x20', '500', '_x8 1 1 1')],
    ['another 500', true, 12, requests('0+97x20', '500', '7+0x9 8 8 8')],
    ['the last one was half an hour ago', false, 40, requests('0+97x50', '500', '7+0x50')],
  ],
  UserManagementSlow: [
    ['2 % take more than a second for ten minutes', true, 15, bucketsOf('0+98x20', '0+100x20')],
    ['none does', false, 15, bucketsOf('0+100x20', '0+100x20')],
    [
      'requests that wait for changes do',
      false,
      15,
      bucketsOf('0+0x20', '0+100x20', '/api/v1/users/changes'),
    ],
  ],
  UserManagementConnectionsExhausted: [
    [
      'each of ten a second waits for 0.3 seconds, for six minutes',
      true,
      14,
      { ...requests('0+600x20', '422', '0+0x20'), [PENDING]: '0 0 0 0 0 0 0 3+0x9' },
    ],
    [
      'each of a thousand a second waits for 30 milliseconds',
      false,
      16,
      { ...requests('0+60000x20', '422', '0+0x20'), [PENDING]: '30+0x20' },
    ],
  ],
  UserManagementOverloaded: [
    ['requests are refused', true, 3, refusals('0 0 10 20')],
    ['none is', false, 30, refusals('20+0x30')],
  ],
  UserManagementKnownCallersRefused: [
    ['a known caller is refused', true, 3, refusals('0 0 10 20', 'known')],
    ['only unverified callers are', false, 3, refusals('0 0 10 20', 'unverified')],
  ],
  UserManagementKeysStale: [
    ['the keys are 16 minutes old', true, 16, { [`jwks_age{${OURS}}`]: '0+60x20' }],
    ['they are 14 minutes old', false, 14, { [`jwks_age{${OURS}}`]: '0+60x20' }],
  ],
  UserManagementChangesUnnumbered: [
    ['a change has waited for 31 minutes', true, 31, { [`changes_unnumbered_age{${OURS}}`]: '0+60x40' }],
    [
      'none has for longer than the cleanup takes',
      false,
      40,
      { [`changes_unnumbered_age{${OURS}}`]: '600+0x40' },
    ],
  ],
  UserManagementLogLinesDropped: [
    ['lines are dropped', true, 3, { [`log_lines_dropped_total{${OURS}}`]: '0 0 5 5' }],
    ['they were, an hour ago', false, 60, { [`log_lines_dropped_total{${OURS}}`]: '0 5+0x60' }],
  ],
  UserManagementDrainTimeout: [
    ['25 seconds of the drain are over, with a request in flight', true, 1, drainWith('1 1')],
    ['none is in flight', false, 1, drainWith('1 0')],
  ],
};

test('Prometheus accepts the configuration of compose, which contains the rules', async () => {
  const found = await promtool('check', 'config', join(OBSERVABILITY, 'prometheus.yaml'));
  expect(found).toContain(`SUCCESS: ${alarms(USUAL).length} rules found`);
});

describe('with the usual durations', () => {
  const cases = Object.entries(CASES).flatMap(([alarm, own]) =>
    own.map(([when, fires, minutes, series, job]) => ({ alarm, when, fires, minutes, series, job })),
  );

  test.each(cases)('$alarm: $when ($fires)', async ({ alarm, fires, minutes, series, job }) => {
    using folder = mkdtempDisposableSync(join(tmpdir(), 'user-management-rules-'));
    const file = join(folder.path, 'test.yaml');
    const input_series = Object.entries(series).map(([name, values]) => ({ series: name, values }));
    // promtool requires every label of a firing alarm, and an empty list for an alarm that does not fire.
    const none = { eval_time: `${minutes}m`, alertname: alarm, exp_alerts: [] };
    writeFileSync(
      file,
      stringify({
        rule_files: [RULES],
        evaluation_interval: '1m',
        tests: [{ interval: '1m', input_series, alert_rule_test: [none] }],
      }),
    );
    const said = await promtool('test', 'rules', file).catch(({ message }) => String(message));

    if (fires) {
      const labels = `alertname="${alarm}"${job ? `, job="${job}"` : ''}`;
      expect(said).toMatch(new RegExp(`FAILED:[^]*alertname: ?${alarm}[^]*got:[^]*${labels}`));
    } else expect(said).toContain('SUCCESS');
  });
});

test('the alarms of the relay are LogQL, and one fires at half of the retention of the changes', () => {
  const [{ rules }] = parse(readFileSync(join(OBSERVABILITY, 'relay-alerts.yaml'), 'utf8')).groups;
  const days = SETTINGS.SVC_CHANGES_RETENTION?.parse(undefined) as number;

  for (const { expr } of rules) expect(String(parser.parse(expr))).not.toContain('⚠');
  expect(String(parser.parse('absent_over_time({app="x"} |= "y" [5m'))).toContain('⚠');
  expect(rules[0].expr).toMatch(new RegExp(`\\| unwrap lag_s \\[5m\\]\\)\\) > ${(days * 24 * 3600) / 2}$`));
});

test('every alarm is tested firing and silent, and its section of the runbook has the meaning, where to look and what to do', () => {
  const runbook = readFileSync(join(OBSERVABILITY, 'README.md'), 'utf8').split(/^## /m);
  for (const { name } of alarms(USUAL))
    expect(new Set(CASES[name]?.map(([, fires]) => fires)), name).toEqual(new Set([true, false]));
  const files = [RULES, join(OBSERVABILITY, 'relay-alerts.yaml')].map((file) =>
    parse(readFileSync(file, 'utf8')),
  );
  for (const { alert, annotations } of files.flatMap(({ groups }) => groups[0].rules))
    expect(new URL(annotations.runbook_url).hash).toBe(`#${alert.toLowerCase()}`);
  for (const { name } of [...alarms(USUAL), ...RELAY_ALARMS]) {
    const section = runbook.find((text) => text.startsWith(`${name}\n`)) ?? '';

    expect(
      [...section.matchAll(/^- \*\*(\w+)\*\*/gm)].map(([, word]) => word),
      name,
    ).toEqual(['Callers', 'Look', 'Do']);
  }
});
