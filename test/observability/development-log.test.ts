import { expect, test } from 'vitest';
import { prettyLine } from '../../lib/observability/pretty-line.ts';
import { startBuiltService } from '../stage/built-service.ts';
import { forThisTest } from '../stage/for-all-tests.ts';
import { TERMINAL } from '../stage/terminal.ts';
import { until } from '../stage/until.ts';

const DEVELOPMENT = { SVC_ENV: 'development' };

const TIME = String.raw`\d\d:\d\d:\d\d\.\d{3}`;

test('in development each event is a readable line without colours: time, level, name, and its fields', async () => {
  const service = await forThisTest(startBuiltService, DEVELOPMENT);
  const init = { headers: { 'x-request-id': 'line-1' } };
  const created = await service.call('POST', '/api/v1/users/', { email: 'jane@example.com' }, init);
  const { id } = created.body as { id: string };
  await service.call('GET', '/nowhere', undefined, init);
  await until('the lines', () => service.printed().includes('/nowhere'));

  expect(service.printed()).not.toContain('\x1b');
  const lines = service.printed().split('\n');
  expect(lines).toContainEqual(
    expect.stringMatching(
      `^${TIME} info {4}user_created request_id="line-1" user_id="${id}" email="j\\*\\*\\*@example.com" subject="svc-test"$`,
    ),
  );
  expect(lines).toContainEqual(
    expect.stringMatching(
      `^${TIME} warning app_error request_id="line-1" message="[^"]+" status_code=404 path="/nowhere"$`,
    ),
  );
});

test('a cause and the cause of a cause are indented with each line of their stacks, and a code follows', () => {
  const inner = { name: 'Error', message: 'six', stack: 'Error: six\n    at seven' };
  const cause = { name: 'Error', code: 'ECONNRESET', message: 'one\ntwo\r\nthree', cause: inner };
  const outer = { name: 'error', code: '42P01', message: 'four', stack: 'error: four\n    at five', cause };
  const event = { timestamp: '2026-01-02T03:04:05.678Z', level: 'error', event: 'app_error', cause: outer };

  expect(prettyLine(event)).toBe(
    [
      ...['03:04:05.678 error   app_error', '  error: four', '      at five', '  code="42P01"'],
      ...['  caused by Error: one', '  two', '  three', '  code="ECONNRESET"'],
      ...['  caused by Error: six', '      at seven'],
    ].join('\n'),
  );
});

test('in a terminal the level is coloured', async () => {
  const service = await forThisTest(startBuiltService, DEVELOPMENT, { runBy: TERMINAL });
  await service.call('GET', '/nowhere');
  await until('the line', () => service.printed().includes('/nowhere'));

  expect(service.printed()).toContain(' \x1b[32minfo   \x1b[0m listening ');
  expect(service.printed()).toContain(' \x1b[33mwarning\x1b[0m app_error ');
});
