import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();

/**
 * The commands of a page that call the service, except for the one that gets a token from the issuer of `npm run
 * dev`.
 */
function commandsOf(page: string): string {
  const blocks = [...readFileSync(page, 'utf8').matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) => block);
  const calls = blocks.filter((block) => block.includes('/api/v1/users/') || block.includes('curl'));
  return calls.join('').replace(/^TOKEN=.*\n/gm, '');
}

async function statusesOf(commands: string): Promise<readonly number[]> {
  const { id } = await service.createUser();
  const environment = { ...process.env, TOKEN: await service.issuer.sign(), ID: id };
  const addressed = commands.replaceAll('http://127.0.0.1:8000', service.url).replaceAll('wait=20', 'wait=1');
  const { stdout } = await promisify(execFile)('sh', ['-e', '-c', addressed], { env: environment });
  return [...stdout.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status));
}

test.each(['README.md', 'infra/api.md', 'infra/change-feed/README.md'])(
  'the commands of %s work without a change',
  async (page) => {
    const commands = commandsOf(page);
    const statuses = await statusesOf(commands);

    expect(statuses).toHaveLength(commands.match(/^curl -si/gm)?.length ?? 0);
    expect(statuses.length).toBeGreaterThan(4);
    expect(statuses.filter((status) => status >= 400)).toEqual([]);
  },
);
