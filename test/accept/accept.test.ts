import { describe, expect, onTestFinished, test } from 'vitest';
import { forAllTests, forThisTest } from '../stage/for-all-tests.ts';
import type { RawRequest } from '../stage/raw-request.ts';
import { accept } from './accept.ts';
import { SEEN_READING, SEEN_WRITING } from './faults.ts';
import { startAcceptable, startBreaking } from './stage.ts';

const service = forAllTests(() => startAcceptable());

const withoutStage = (request: RawRequest) => ({
  ...request,
  target: request.target.replace(/^\/stage/, ''),
});

describe('a correct deployment', () => {
  test('passes with exit code 0, and no test users remain', async () => {
    const { code, report } = await accept([service.url, '--profile', 'full'], service.credentials);

    expect(report).toMatch(/\d+ held, 0 did not, 0 skipped, in [\d.]+ s\. The deployment holds\.\n$/);
    expect(code).toBe(0);
    expect(await service.users()).toEqual(service.others);
  });

  test('is only read by default, with a given token, too', async () => {
    const front = await forThisTest(startBreaking, service.url, {});
    const token = await service.tokens.issueToken({ clientId: 'given' });
    const { code, report } = await accept([front.url], { ACCEPT_TOKEN: token });

    expect(report).toContain('may not read (403): skipped, the provider gives no such token');
    expect(code, report).toBe(0);
    expect(new Set(front.seen.map(({ method }) => method))).toEqual(new Set(['GET', 'HEAD', 'OPTIONS']));
  });

  test('can have other settings, and a base path', async () => {
    const other = await forThisTest(startAcceptable, {
      SVC_REQUIRE_IF_MATCH: 'true',
      SVC_REQUEST_ID_HEADER: 'X-Correlation-ID',
      SVC_BODY_LIMIT: '2048',
      SVC_OAUTH_DELETE_ROLE: 'users.delete',
    });
    const mounted = await startBreaking(other.url, {
      onRequest: withoutStage,
      onResponse: ({ headers: { location, link, ...headers }, ...answer }) => ({
        ...answer,
        headers: {
          ...headers,
          ...(location && { location: `${mounted.url}/stage${location}` }),
          ...(link && { link: link.replace('</', '</stage/') }),
        },
      }),
    });
    onTestFinished(mounted.stop);
    const { code, report } = await accept([`${mounted.url}/stage/`, '--profile', 'full'], {
      ...other.credentials,
      ACCEPT_REQUEST_ID_HEADER: 'X-Correlation-ID',
      ACCEPT_BODY_LIMIT: '2048',
      ACCEPT_SCOPE: 'users.read users.write users.delete',
      ACCEPT_DELETE_ROLE: 'users.delete',
    });

    expect(code, report).toBe(0);
    expect(report).toContain('✓ without `If-Match` it is 428');
    expect(report).toContain('✓ a token with users.write alone may not delete (403)');
  });

  test('fails behind a proxy that strips a prefix and leaves Location and Link as they are', async () => {
    const mounted = await forThisTest(startBreaking, service.url, { onRequest: withoutStage });
    const url = `${mounted.url}/stage`;
    const { code, report } = await accept([url, '--profile', 'full'], service.credentials);
    const reading = await accept([url], service.credentials);

    expect([code, reading.code]).toEqual([1, 1]);
    const outside = (reference: string) =>
      `${reference}\\S* leads to ${mounted.url}/api/v1/\\S+ outside of ${url}/`;
    expect(report).toMatch(new RegExp(`POST /api/v1/users/: ${outside('/api/v1/users/')}`));
    expect(reading.report).toMatch(new RegExp(outside('/api/v1/users/changes')));
  });
});

/** Without a result the exit code is 2, and the last line has the reason. No secret is printed. */
async function expectNoResult(reason: string, environment: Record<string, string>, url = service.url) {
  const variables = { ...service.credentials, ...environment };
  const { code, report } = await accept([url, '--profile', 'full'], variables);

  expect(code).toBe(2);
  expect(report).toMatch(/\n\d+ held, 0 did not, \d+ skipped, in [\d.]+ s\. Not judged: .*\n$/);
  expect(report).toContain(`Not judged: ${reason}.\n`);
  expect(report).not.toContain('hunter2');
}

describe('exit code 2 means that there is no result, because', () => {
  test.each([
    ['nothing answers there (bad port)', {}, 'http://127.0.0.1:1'],
    ['the token endpoint answers 400 invalid_scope', { ACCEPT_SCOPE: 'x', ACCEPT_CLIENT_SECRET: 'hunter2' }],
    ['there is no token: see ACCEPT_TOKEN and ACCEPT_TOKEN_URL', { ACCEPT_TOKEN_URL: '' }],
    ['the token is refused, and is expired or no JWT', { ACCEPT_TOKEN: 'a.b.c' }],
  ])('%s', expectNoResult);

  test('the token lacks a role', async () => {
    const ACCEPT_TOKEN = await service.tokens.issueToken({ clientId: 'reader', roles: ['users.read'] });

    await expectNoResult('the token lacks users.write', { ACCEPT_TOKEN });
  });

  test.each([
    [[], 'Exactly one URL has to be given.'],
    [['http://a', '--profile', 'all'], '--profile is one of read-only, full.'],
    [['http://a', '--fast'], "Unknown option '--fast'."],
  ])('the arguments %j are invalid', async (words, message) => {
    const { code, report } = await accept(words);

    expect([code, report.split('\n')[0]]).toEqual([2, message]);
  });
});

describe.concurrent.each([
  ['read-only', SEEN_READING],
  ['full', SEEN_WRITING],
] as const)('the checks of the profile %s report a deployment in which', (profile, faults) => {
  test.each(Object.entries(faults))('%s', async (_title, fault) => {
    const front = await startBreaking(service.url, fault);
    const { code, report } = await accept([front.url, '--profile', profile], service.credentials);
    await front.stop();

    expect(code, report).toBe(1);
    expect(report).toMatch(/^ {2}✗ /m);
  });
});

test('the existing users of a broken deployment stay unchanged', async () => {
  expect(await service.users()).toEqual(service.others);
});
