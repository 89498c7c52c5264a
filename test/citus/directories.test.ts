import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { nextOf } from '../stage/changes.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { USERS, type UserBody } from '../stage/responses.ts';
import { type Directory, startDirectories } from './directories.ts';

/** Number of users of the directory that is moved. */
const MANY = 200_000;

const LONGEST_PAUSE_MS = 2000;

const citus = forAllTests(() => startDirectories());

test('the outage of a worker concerns only the directories on it, and nothing acknowledged is lost', async () => {
  const [one, two] = citus.directories;
  const [, worker] = citus.nodes;
  const callers = citus.directories.map((directory) => directory.startCallers(4));
  await Promise.all([one.untilWritten(), two.untilWritten()]);
  await sleep(1000);
  const killed = performance.now();
  await worker.kill();
  const gone = performance.now();
  await sleep(3000);
  const served = one.ledger.successesAfter(gone).filter(({ sent }) => sent > gone);
  await worker.start();
  await one.untilWritten();
  await sleep(1000);
  await Promise.all(callers.map((group) => group.stop()));

  expect(served).toEqual([]);
  expect(Object.keys(one.ledger.refusedByStatus(killed))).toEqual(['503']);
  expect(two.ledger.refusedByStatus()).toEqual({});
  expect(two.ledger.longestResponse()).toBeLessThan(LONGEST_PAUSE_MS);
  expect([await one.faults(), await two.faults()]).toEqual([[], []]);
});

test('a directory of 200,000 users is moved and moved back beside eight writers, and no request is refused', async () => {
  const [one, two] = citus.directories;
  const [, home, target] = citus.nodes;
  await citus.query(`INSERT INTO one.users (id, email)
    SELECT gen_random_uuid(), 'old-' || n || '@example.com' FROM generate_series(1, ${MANY}) AS n`);
  const callers = citus.directories.map((directory) => directory.startCallers(8));
  await sleep(1000);
  const begun = performance.now();
  for (const node of [target, home]) await citus.move(one.name, node);
  await sleep(1000);
  const pauses = [one.longestPause(begun), two.longestPause(begun)];
  await Promise.all(callers.map((group) => group.stop()));
  await citus.query(`DELETE FROM one.users WHERE email LIKE 'old-%'`);

  expect([one.ledger.refusedByStatus(begun), two.ledger.refusedByStatus(begun)]).toEqual([{}, {}]);
  expect(Math.max(...pauses)).toBeLessThan(LONGEST_PAUSE_MS);
  expect([await one.faults(), await two.faults()]).toEqual([[], []]);
});

test('whatever node a write goes through, a later read has its change, and versions are in order', async () => {
  const [, two] = citus.directories;
  const instances = await Promise.all(citus.nodes.map((node) => two.startInstance(node)));
  const readOn = startReader(instances[0] as Instance);
  const writeThroughAll = async (from: number) => {
    const at = (turn: number) => instances[(from + turn) % instances.length] as Instance;
    const created = await at(0).call('POST', USERS, { email: `${performance.now()}-${from}@example.com` });
    const { id } = created.body as UserBody;
    for (const turn of [1, 2, 3]) await at(turn).call('PATCH', USERS + id, { full_name: `${turn}` });
    return id;
  };

  await readOn();
  for (let round = 0; round < 6; round += 1) {
    const id = await writeThroughAll(round);
    expect((await readOn()).get(id)).toBe(4);
  }
  // More changes than one statement gives positions to.
  const writers = Array.from({ length: 8 }, async (_, writer) => {
    const ids: string[] = [];
    for (let count = 0; count < 40; count += 1) ids.push(await writeThroughAll(writer + count));
    return ids;
  });
  const ids = (await Promise.all(writers)).flat();
  const versions = await readOn();
  expect(ids.filter((id) => versions.get(id) !== 4)).toEqual([]);
  await Promise.all(instances.map((instance) => instance.stop()));
}, 300_000);

type Instance = Awaited<ReturnType<Directory['startInstance']>>;

/** Reads the changes to their end, holds the versions of each user to their order, and resolves with the last ones. */
function startReader({ call }: Instance) {
  let next = `${USERS}changes?limit=1000`;
  const versions = new Map<string, number>();
  return async () => {
    for (let isEnd = false; !isEnd; ) {
      const page = await call('GET', next);
      const changes = page.body as { subject: string; data: { version: number } }[];
      for (const { subject, data } of changes) {
        expect([subject, data.version]).toEqual([subject, (versions.get(subject) ?? 0) + 1]);
        versions.set(subject, data.version);
      }
      next = nextOf(page);
      isEnd = changes.length === 0;
    }
    return versions;
  };
}
