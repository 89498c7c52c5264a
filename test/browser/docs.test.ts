import { expect, test } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import { startTokenIssuer } from '../../host/development/token-issuer.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { USERS } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';
import { startBrowser } from './browser.ts';

const operations = endpoints.map(({ route: { operationId, isProbe } }) => ({
  operationId,
  tag: isProbe ? 'probes' : 'users',
}));

const issuer = forAllTests(() => startTokenIssuer({ audience: 'user-management-service', port: 0 }));
const browser = forAllTests(startBrowser);
const service = serviceUnderTest(() => ({
  SVC_ENV: 'development',
  SVC_OAUTH_ISSUER: issuer.issuer,
  SVC_OAUTH_JWKS_URI: issuer.jwksUri,
  SVC_OAUTH_AUDIENCE: 'user-management-service',
  SVC_OAUTH_ROLES_CLAIM: 'aud',
}));

test('shows every operation in Swagger UI, authorizes with the issuer, and creates a user', async () => {
  const visit = await browser.visit(`${service.url}/docs`);
  const { page } = visit;
  // The create of README.md comes first, and the page is as wide as a telephone.
  await service.call('POST', USERS, { email: 'ada@example.com' });
  await page.setViewportSize({ width: 390, height: 844 });

  for (const { operationId, tag } of operations) {
    const operation = page.locator(`#operations-${tag}-${operationId}`);
    await operation.locator('.opblock-summary-control').click();
    await operation.locator('.responses-table').first().waitFor();
  }
  const pageWidth = await page.locator('html').evaluate(({ scrollWidth }) => scrollWidth);
  expect(pageWidth).toBe(390);
  const models = page.locator('.models .json-schema-2020-12');
  for (const model of [models, models.filter({ hasText: /^Problem/ })])
    await model.first().getByText('Expand all').first().click();
  expect(await page.locator('.models').innerText()).toContain('urn:svc:error:conflict_error');
  expect(await page.locator('.info').innerText()).not.toContain('urn:svc:error:');

  await page.locator('.auth-wrapper .authorize').first().click();
  for (const text of ['enter the id and the secret', 'users.read', 'users.write', 'api.superuser'])
    expect(await page.locator('.modal-ux').innerText()).toContain(text);
  await page.locator('[data-name=clientSecret]').fill('any');
  await page.locator('.modal-ux .modal-btn.authorize').click();
  await page.locator('.modal-ux').getByText('Authorized', { exact: true }).waitFor();
  await page.locator('.modal-ux .btn-done').click();

  const create = page.locator('#operations-users-createUser');
  await create.locator('.try-out__btn').click();
  await create.locator('.execute').click();
  const answer = create.locator('.live-responses-table .response');
  await answer.waitFor();

  expect(await answer.locator('.response-col_status').innerText()).toContain('201');
  expect(await answer.locator('.response-col_description').innerText()).toContain('grace@example.com');
  expect(await visit.referencesElsewhere()).toEqual([]);
  expect(visit.origins).toEqual(new Set([service.url, issuer.issuer]));
  expect(visit.console).toEqual([]);
});

test('shows every operation in ReDoc', async () => {
  const visit = await browser.visit(`${service.url}/redoc`);
  const { page } = visit;

  for (const { operationId, tag } of operations) {
    const operation = page.locator(`[id="tag/${tag}/operation/${operationId}"]`);
    await operation.locator('h2').waitFor();
    for (const button of await operation.locator('button[aria-expanded=false]').all()) await button.click();
  }

  expect(await page.getByText('urn:svc:error:conflict_error').count()).toBeGreaterThan(0);
  expect(await visit.referencesElsewhere()).toEqual([]);
  expect(visit.origins).toEqual(new Set([service.url]));
  expect(visit.console).toEqual([]);
});
