import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();

test.each(['README.md', 'infra/docs/api.md', 'infra/docs/change-feed.md'])(
  'the commands of %s work without a change',
  async (page) => {
    const blocks = [...readFileSync(page, 'utf8').matchAll(/```sh\n(.*?)```/gs)].map(
      ([, block = '']) => block,
    );
    const calls = blocks.filter((block) => block.includes('/api/v1/users/') || block.includes('curl'));
    // Without the command that gets a token from the issuer of `npm run dev`.
    const commands = calls.join('').replace(/^TOKEN=.*\n/gm, '');
    const addressed = commands
      .replaceAll('http://127.0.0.1:8000', service.url)
      .replaceAll('wait=20', 'wait=1');
    const { id } = await service.createUser();
    const env = { ...process.env, TOKEN: await service.issuer.sign(), ID: id };
    const { stdout } = await promisify(execFile)('sh', ['-e', '-c', addressed], { env });
    const statuses = [...stdout.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));

    expect(statuses).toHaveLength(commands.match(/^curl -si/gm)?.length ?? 0);
    expect(statuses.length).toBeGreaterThan(4);
    expect(statuses.filter((status) => status >= 400)).toEqual([]);
  },
);
