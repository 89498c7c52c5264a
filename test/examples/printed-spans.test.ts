import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import type { Variables } from '../../lib/settings/environment.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { render } from '../kubernetes/render.ts';

const UNIT = 'infra/examples/user-management-service.service';

/** With the defaults of its variables. */
const compose = parse(readFileSync('infra/compose.yaml', 'utf8').replace(/\$\{\w+:-([^}]*)\}/g, '$1'));

const unit = readFileSync(UNIT, 'utf8');
const variablesOfUnit = [...unit.matchAll(/^Environment=(.*)$/gm)].flatMap(([, words = '']) =>
  words.split(' '),
);

const settingsIn = (folder: string): Variables =>
  render(folder).find(({ kind }) => kind === 'ConfigMap')?.data as Variables;

test.each([
  ['Compose', compose.services.service.environment],
  ['systemd', Object.fromEntries(variablesOfUnit.map((word) => word.split('=')))],
  ['Kubernetes, the overlay', settingsIn('infra/kubernetes/overlays/production')],
  ['Kubernetes, the example', settingsIn('infra/kubernetes/examples/production')],
] as const)('the example for %s prints no spans, by a setting of its own', (_name, variables: Variables) => {
  const identity = {
    SVC_OAUTH_ISSUER: 'x',
    SVC_OAUTH_AUDIENCE: 'x',
    SVC_OAUTH_JWKS_URI: 'http://localhost/jwks',
  };
  const { otel } = readSettings({ ...identity, ...variables, SVC_ENV: 'production' });

  expect(otel.enabled && otel.printsSpans).toBe(false);
});

test('the unit of systemd has the options of npm start, and the time of the longest shutdown', () => {
  const [, start = ''] =
    /(MALLOC.* exec node .*) dist\/host\/main\.mjs/.exec(readFileSync('commands.sh', 'utf8')) ?? [];
  const [, command = ''] = /^ExecStart=(.*)$/m.exec(unit) ?? [];

  for (const option of start.match(/--[\w=-]+/g) ?? []) expect(command).toContain(option);
  for (const variable of start.match(/(MALLOC|UV)_\w+=\d+/g) ?? [])
    expect(variablesOfUnit).toContain(variable);
  expect(unit).toContain('\nTimeoutStopSec=32\n');
});
