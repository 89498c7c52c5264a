import { expect, test } from 'vitest';
import { callerOf } from '../stage/caller.ts';
import { change } from '../stage/changes.ts';
import { startDevelopment } from '../stage/development.ts';
import { copyOfProject } from '../stage/project-copy.ts';
import type { UserBody } from '../stage/responses.ts';
import { checkOutVersion } from './earlier-version.ts';

/** Calls the service of a banner, with the token in it. */
function callerIn(banner: string) {
  const [, url = ''] = /(http:\/\/127\.0\.0\.1:\d+)\/docs/.exec(banner) ?? [];
  const [, token = ''] = /(ey[\w-]+\.[\w-]+\.[\w-]+)/.exec(banner) ?? [];
  const call = callerOf(url, { sign: async () => token });
  return (method: string, path: string, body?: unknown) => call(method, `/api/v1/users/${path}`, body);
}

test('in development the data of the first version survive the upgrade', async () => {
  const folder = checkOutVersion('1.0.0');
  const first = await startDevelopment({}, folder);
  const old = callerIn(await first.untilBanner());
  const ada = (await old('POST', '', { email: 'ada@example.com' })).body as UserBody;
  expect(await first.stop({ keepsData: true })).toBe(0);

  const latest = await startDevelopment({}, copyOfProject(folder));
  const call = callerIn(await latest.untilBanner());
  expect((await call('GET', '')).body).toEqual([ada]);
  expect((await call('PATCH', ada.id, { full_name: 'Ada' })).headers.etag).toBe('"2"');
  expect((await call('GET', 'changes')).body).toEqual([change('user.updated', ada, 2, ['full_name'])]);
  expect(await latest.stop()).toBe(0);
});
