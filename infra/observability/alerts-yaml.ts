import { stringify } from 'yaml';
import { type Alarm, alarms, type Patience, RELAY_ALARMS, RUNBOOK_URL, USUAL } from './alarms.ts';

/** The alarms as a file of Prometheus rules. */
export function alertsYaml(patience: Patience = USUAL): string {
  return toYaml(rules(alarms(patience)));
}

/** The alarms as a resource of the Prometheus Operator. */
export function prometheusRuleYaml(): string {
  const name = 'user-management-service';
  const metadata = { name, labels: { 'app.kubernetes.io/name': name } };
  return toYaml({
    apiVersion: 'monitoring.coreos.com/v1',
    kind: 'PrometheusRule',
    metadata,
    spec: rules(alarms(USUAL)),
  });
}

/** The alarms of the relay as a file of rules of Loki. */
export function relayAlertsYaml(): string {
  return toYaml(rules(RELAY_ALARMS, 'user-management-service-relay'));
}

function rules(list: readonly Alarm[], group = 'user-management-service') {
  const all = list.map(({ name, severity, expr, for: hold, summary }) => ({
    alert: name,
    expr,
    for: hold,
    labels: { severity },
    annotations: { summary, runbook_url: `${RUNBOOK_URL}#${name.toLowerCase()}` },
  }));
  return { groups: [{ name: group, rules: all }] };
}

function toYaml(content: object): string {
  return `# Made by \`npm run generate\` from alarms.ts.\n${stringify(content, { lineWidth: 0 })}`;
}
