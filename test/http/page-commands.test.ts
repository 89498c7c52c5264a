import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { startAcceptable } from '../accept/stage.ts';
import { change } from '../stage/changes.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { blockOf, blocksOf } from '../stage/page-blocks.ts';
import type { UserBody } from '../stage/responses.ts';

const service = forAllTests(startAcceptable);

// One of its users is the one that README.md creates. Its changes stay.
beforeAll(() => service.database.query('DELETE FROM users'));

test.each([
  ['README.md', [blockOf('README.md', 'Call it')]],
  ['infra/docs/api.md', blocksOf('infra/docs/api.md').filter((code) => !code.startsWith('npx redocly'))],
  ['infra/docs/change-feed.md', [blockOf('infra/docs/change-feed.md', 'Start and follow')]],
])('the commands of %s work without a change', async (_page, blocks) => {
  const commands = blocks
    .join('')
    .replaceAll('http://127.0.0.1:8000', service.url)
    .replaceAll('http://127.0.0.1:9000/token', service.tokens.tokenEndpoint)
    .replaceAll('wait=20', 'wait=1');
  const TOKEN = await service.tokens.issueToken({ clientId: 'reader' });
  const [{ id: ID }] = service.others as [UserBody];
  const env = { PATH: process.env.PATH, TOKEN, ID };
  const { stdout } = await promisify(execFile)('sh', ['-eu', '-c', commands], { env });
  const statuses = [...stdout.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));

  expect(statuses).toHaveLength(commands.match(/^curl -si/gm)?.length ?? 0);
  expect(statuses.length).toBeGreaterThan(4);
  expect(statuses.filter((status) => status >= 400)).toEqual([]);
});

test('the change of the page has the members of a change', () => {
  const shown = JSON.parse(blockOf('infra/docs/change-feed.md', 'Change feed'));

  expect(shown).toEqual(change('user.updated', { id: shown.subject }, 3, ['full_name']));
});
