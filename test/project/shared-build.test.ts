import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { forThisTest } from '../stage/for-all-tests.ts';
import { startProcess } from '../stage/process.ts';
import { openFolder, removeProject } from '../stage/project-copy.ts';
import { until } from '../stage/until.ts';

const PROGRAM = `
  import { builtHost } from '${join(import.meta.dirname, '../stage/build.ts')}';
  console.log(await builtHost());`;

test('processes share one build, which is not deleted while its builder lives, however long it takes', async () => {
  const folder = openFolder();
  onTestFinished(() => removeProject(folder));
  const build = () =>
    forThisTest(async () =>
      startProcess([process.execPath, '--input-type=module', '-e', PROGRAM], { env: { TMPDIR: folder } }),
    );
  const untilItBuilds = ({ processId }: { processId: number }) =>
    until('a draft', () => readdirSync(folder).find((name) => name.endsWith(`.${processId}`)));

  const killed = await build();
  await untilItBuilds(killed);
  killed.signal('SIGKILL');
  await killed.exited;
  const builder = await build();
  const draft = join(folder, await untilItBuilds(builder));
  utimesSync(draft, new Date(0), new Date(0));
  const others = await Promise.all([build(), build()]);
  const processes = [builder, ...others];
  const ends = await Promise.all(processes.map(({ exited }) => exited));

  expect(ends).toEqual(processes.map(() => ({ code: 0, signal: null })));
  expect(new Set(processes.map(({ printed }) => printed())).size).toBe(1);
  expect(readdirSync(folder).filter((name) => name.startsWith('user-management-build-'))).toHaveLength(1);
});
