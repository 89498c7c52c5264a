// Takes the picture of /docs, infra/docs/docs.png, with headless Chromium: node test/http/docs-picture.ts [path of Chromium]
import { openSync } from 'node:fs';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import { startHost } from '../../host/host.ts';
import { readSettings } from '../../lib/settings/settings.ts';

const executablePath = process.argv[2] ?? '/usr/bin/chromium';
// The documentation needs neither PostgreSQL nor an identity provider.
const settings = readSettings({
  SVC_HOST: '127.0.0.1',
  SVC_PORT: '0',
  SVC_OAUTH_JWKS_URI: 'http://127.0.0.1:9/jwks',
  SVC_OAUTH_ISSUER: 'http://127.0.0.1:9',
  SVC_OAUTH_AUDIENCE: 'user-management-service',
  SVC_POSTGRES_HOST: '/nowhere',
  SVC_POSTGRES_MIGRATE: 'false',
});
const host = await startHost(settings, { logTo: openSync('/dev/null', 'w') });
const browser = await chromium.launch({ executablePath });
const page = await browser.newPage({ viewport: { width: 1100, height: 690 } });
await page.goto(`${host.url}/docs`);
await page.getByText('/api/v1/users/batch').first().waitFor();
// The introduction is above the operations. The picture shows only the operations.
await page.locator('#operations-tag-users').evaluate((tag) => tag.scrollIntoView());
await page.screenshot({ path: join(import.meta.dirname, '../../infra/docs/docs.png') });
await browser.close();
await host.shutDown();
