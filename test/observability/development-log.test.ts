import { afterEach, expect, test } from 'vitest';
import { type BuiltService, startBuiltService } from '../stage/built-service.ts';
import { until } from '../stage/until.ts';

let service: BuiltService;

afterEach(() => service.remove());

const DEVELOPMENT = { SVC_ENV: 'development' };

const TIME = String.raw`\d\d:\d\d:\d\d\.\d{3}`;

/** Gives a command a terminal for its output; that of util-linux and that of BSD differ. */
const TERMINAL =
  process.platform === 'darwin'
    ? ['script', '-q', '/dev/null']
    : ['sh', '-c', 'exec script --quiet --flush --command "$*" /dev/null', 'sh'];

test('in development each event is a line for people: time, level, name, and its fields', async () => {
  service = await startBuiltService(DEVELOPMENT);
  const init = { headers: { 'x-request-id': 'line-1' } };
  const created = await service.call('POST', '/api/v1/users/', { email: 'jane@example.com' }, init);
  const { id } = (await created.json()) as { id: string };
  await service.call('GET', '/nowhere', undefined, init);
  await until('the lines', () => service.printed().includes('/nowhere'));

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

test('in development the stack of a cause stands below its line, frame by frame', async () => {
  service = await startBuiltService(DEVELOPMENT);
  await service.database.drop();
  await service.call('GET', '/api/v1/users/');
  const printed = await until('the stack', () =>
    /status_code=503 .*\n.+\n +at .+\n +at /.test(service.printed()),
  );

  expect(printed).toBe(true);
});

test('away from a terminal there are no colours', async () => {
  service = await startBuiltService(DEVELOPMENT);
  await service.call('GET', '/nowhere');
  await until('the line', () => service.printed().includes('/nowhere'));

  expect(service.printed()).not.toContain('\x1b');
});

test('on a terminal the level is coloured', async () => {
  service = await startBuiltService(DEVELOPMENT, { runBy: TERMINAL });
  await service.call('GET', '/nowhere');
  await until('the line', () => service.printed().includes('/nowhere'));

  expect(service.printed()).toContain(' \x1b[32minfo   \x1b[0m listening ');
  expect(service.printed()).toContain(' \x1b[33mwarning\x1b[0m app_error ');
});
