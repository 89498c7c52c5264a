import { stringify } from 'yaml';
import { alarms, type Patience, USUAL } from './alarms.ts';

const RUNBOOK = 'infra/observability/README.md#';

/** The alarms as a file of Prometheus rules. */
export function alertsYaml(patience: Patience = USUAL): string {
  const all = alarms(patience).map(({ name, severity, expr, for: hold, summary }) => ({
    alert: name,
    expr,
    for: hold,
    labels: { severity },
    annotations: { summary, runbook: RUNBOOK + name.toLowerCase() },
  }));
  const groups = [{ name: 'user-management-service', rules: all }];
  return `# Made by \`npm run generate\` from alarms.ts.\n${stringify({ groups }, { lineWidth: 0 })}`;
}
