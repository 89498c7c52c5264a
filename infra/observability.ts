import { keepFile, table } from './generated-file.ts';
import { alertsYaml, prometheusRuleYaml, relayAlertsYaml } from './observability/alerts-yaml.ts';
import { dashboard, ROWS } from './observability/dashboard.ts';

keepFile('observability/alerts.yaml', alertsYaml());
keepFile('observability/relay-alerts.yaml', relayAlertsYaml());
keepFile('kubernetes/components/prometheus-rule/prometheus-rule.yaml', prometheusRuleYaml());
keepFile('observability/dashboard.json', `${JSON.stringify(dashboard(), null, 2)}\n`);
keepFile('observability/dashboard.md', panels());

function panels(): string {
  const tables = ROWS.map(({ title, panels }) => {
    const rows = panels.map((panel) => [panel.title, panel.description]);
    return `## ${title}\n\n${table(['panel', 'shows'], rows)}\n`;
  });
  return `# Panels of the dashboard

Made by \`npm run generate\` from \`dashboard.ts\`. The variables \`job\` and \`instance\` select what all panels show.

${tables.join('\n')}`;
}
