import { alertsYaml, prometheusRuleYaml, relayAlertsYaml } from '../observability/alerts-yaml.ts';
import { dashboard } from '../observability/dashboard.ts';
import { keepFile } from './generated-file.ts';

keepFile('observability/alerts.yaml', alertsYaml());
keepFile('observability/relay-alerts.yaml', relayAlertsYaml());
keepFile('kubernetes/components/prometheus-rule/prometheus-rule.yaml', prometheusRuleYaml());
keepFile('observability/dashboard.json', `${JSON.stringify(dashboard(), null, 2)}\n`);
