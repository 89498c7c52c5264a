import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();

/** The commands of a page, or of a section of it, that are about changes. */
function commandsOf(page: string): string {
  const blocks = [...readFileSync(page, 'utf8').matchAll(/```sh\n(.*?)```/gs)].map(([, block = '']) => block);
  return blocks.filter((block) => block.includes('changes')).join('');
}

test.each(['infra/change-feed/README.md', 'README.md'])(
  'the commands of %s work as they stand',
  async (page) => {
    const { id } = await service.createUser();
    const commands = commandsOf(page)
      .replaceAll('http://127.0.0.1:8000', service.url)
      .replace('wait=20', 'wait=1');
    const environment = { ...process.env, TOKEN: await service.issuer.sign(), ID: id };
    const { stdout } = await promisify(execFile)('sh', ['-e', '-c', commands], { env: environment });

    const answers = stdout.split(/(?=HTTP\/1\.1 )/).filter(Boolean);
    expect(answers).toHaveLength(commands.match(/^curl/gm)?.length ?? 0);
    for (const answer of answers)
      expect(answer).toMatch(/^HTTP\/1\.1 200 .*^Link: <[^>]+>; rel="next"\r\n.*^\[/ims);
  },
);
