import { describe, expect, test } from 'vitest';
import { createEventLog } from '../../lib/observability/event-log.ts';
import { warnAboutSettings } from '../../lib/observability/reporting.ts';
import type { Variables } from '../../lib/settings/environment.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { startService } from '../stage/service.ts';

const REQUIRED = {
  SVC_OAUTH_JWKS_URI: 'http://localhost/keys',
  SVC_OAUTH_ISSUER: 'issuer',
  SVC_OAUTH_AUDIENCE: 'audience',
  SVC_OTEL_ENABLED: 'false',
};

/** The warnings for these settings. */
function warningsOf(variables: Variables): readonly Record<string, unknown>[] {
  const lines: Record<string, unknown>[] = [];
  const settings = readSettings({ ...REQUIRED, SVC_ENV: 'production', ...variables });
  warnAboutSettings(
    settings,
    createEventLog(settings, (line) => lines.push(JSON.parse(line))),
  );
  return lines;
}

const isLogged = (hosts: readonly string[]) => [
  { timestamp: expect.any(String), level: 'warning', event: 'postgres_tls_off', hosts },
];

describe('postgres_tls_off names the hosts of PostgreSQL that are used without TLS', () => {
  test.each<[string, string, string[], Variables?]>([
    ['a name', 'db.example.com', ['db.example.com']],
    ['a name in any case', 'DB.Example.com', ['DB.Example.com']],
    ['an address', '10.0.0.5', ['10.0.0.5']],
    ['an IPv6 address', '2001:db8::1', ['2001:db8::1']],
    ['an IPv4-mapped address', '::ffff:10.0.0.5', ['::ffff:10.0.0.5']],
    ['an address with a zone', 'fe80::1%eth0', ['fe80::1%eth0']],
    ['a name that begins like a local one', 'localhost.example.com', ['localhost.example.com']],
    ['the remote ones of several', 'localhost, db-1 ,/run/postgresql,db-2', ['db-1', 'db-2']],
    ['without their ports', 'db-1,db-2', ['db-1', 'db-2'], { SVC_POSTGRES_PORT: '5432,5433' }],
    ['also if SVC_POSTGRES_SSLMODE is empty, which means unset', 'db', ['db'], { SVC_POSTGRES_SSLMODE: '' }],
  ])('%s', (_case, hosts, named, others) => {
    expect(warningsOf({ SVC_POSTGRES_HOST: hosts, ...others })).toEqual(isLogged(named));
  });
});

test.each<readonly [string, Variables]>([
  ['without a host', {}],
  ['for localhost, in any case', { SVC_POSTGRES_HOST: 'localhost,LocalHost' }],
  ['for loopback addresses', { SVC_POSTGRES_HOST: '127.0.0.1,127.1.2.3,::1,0:0:0:0:0:0:0:1' }],
  ['for IPv4-mapped loopback addresses', { SVC_POSTGRES_HOST: '::ffff:127.0.0.1,::FFFF:7f00:1' }],
  ['for the path of a socket', { SVC_POSTGRES_HOST: '/run/postgresql' }],
  ['in development', { SVC_ENV: 'development', SVC_POSTGRES_HOST: 'db' }],
  ['if SVC_POSTGRES_SSLMODE disables TLS', { SVC_POSTGRES_SSLMODE: 'disable', SVC_POSTGRES_HOST: 'db' }],
  ['if TLS is required', { SVC_POSTGRES_SSLMODE: 'require', SVC_POSTGRES_HOST: 'db' }],
  ['if TLS is verified', { SVC_POSTGRES_SSLMODE: 'verify-full', SVC_POSTGRES_HOST: 'db' }],
])('postgres_tls_off is not logged %s', (_case, variables) => {
  expect(warningsOf(variables)).toEqual([]);
});

test('postgres_tls_off is logged once, at the start of an instance', async () => {
  const service = await forThisTest(startService, { SVC_POSTGRES_HOST: '127.0.0.1,db.invalid' });
  await service.call('GET', '/api/v1/users/');

  const logged = (await service.events()).filter(({ event }) => event === 'postgres_tls_off');
  expect(logged).toEqual(isLogged(['db.invalid']));
});
