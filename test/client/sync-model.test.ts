import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, test } from 'vitest';
import { startAcceptable, startBreaking } from '../accept/stage.ts';
import { seededRandom } from '../lab/load/random.ts';
import { forAllTests } from '../stage/for-all-tests.ts';
import { SEED } from '../stage/seed.ts';
import { repeat } from '../stage/until.ts';
import { callAs, openFiles, startCommand, toLines, variablesFor } from './command.ts';

/** `SYNC_ROUNDS=2000` is the long form. */
const ROUNDS = Number(process.env.SYNC_ROUNDS ?? 8);

const files = openFiles();
afterAll(files.remove);
const service = forAllTests(startAcceptable);

type User = Readonly<Record<string, unknown>>;

test(`after ${ROUNDS} rounds of sync with other writers and kills, users equal their lines (FUZZ_SEED=${SEED})`, {
  timeout: 60_000 + ROUNDS * 30_000,
}, async () => {
  const { below, chance: is } = seededRandom(SEED);
  const variables = await variablesFor(service);
  const call = (method: string, path: string, body?: object) => callAs(variables, method, path, body);
  // Each write of sync is based on the last read of that user.
  const tags = new Map<string, string>();
  const unread: string[] = [];
  const front = await startBreaking(service.url, {
    onRequest: (request) => {
      const tag = request.fields.find(([name]) => name.toLowerCase() === 'if-match')?.[1];
      if (request.method === 'PATCH' && tag !== tags.get(request.target)) unread.push(request.target);
      return request;
    },
    onResponse: (answer, { method, target }) => {
      if (method === 'GET' && answer.headers.etag) tags.set(target, answer.headers.etag);
      return answer;
    },
  });

  for (let round = 0; round < ROUNDS; round += 1) {
    const key = (n: number) => `${SEED}.${round}.${n}`;
    const create = (n: number, more: object = {}) =>
      call('POST', '', { email: `${key(n)}@x`, external_id: key(n), full_name: `Name ${n}`, ...more });
    const list = async (): Promise<readonly User[]> => {
      const all: User[] = [];
      for (let n = 0; n < 40; n += 1) all.push(...(await call('GET', `?external_id=${key(n)}`)));
      for (let n = 0; n < 3; n += 1) all.push(...(await call('GET', `?email=${key(n)}.free@x`)));
      return all;
    };
    const count = 8 + below(16);
    for (let n = 0; n < count; n += 1) {
      const { id } = await create(n);
      if (is(0.2)) await call('PATCH', id, { is_active: false });
    }
    for (let n = 0; n < 3; n += 1) await call('POST', '', { email: `${key(n)}.free@x` });
    const before = await list();

    // Names, states and emails that pass from user to user, new users, and users without a line.
    const shift = is(0.4) ? below(count) : 0;
    const lines: User[] = [];
    for (let n = 0; n < count + below(6); n += 1) {
      if (n > 0 && is(0.15)) continue;
      const email = is(0.05)
        ? `${key(below(3))}.free@x`
        : `${key(n < count && shift ? (n + shift) % (count + 1) : n)}@x`;
      const line = {
        external_id: key(n),
        email,
        ...(is(0.5) && { full_name: `Other ${below(3)}` }),
        ...(is(0.5) && { is_active: is(0.7) }),
      };
      lines.push(line);
      if (is(0.05)) lines.push({ ...line, ...(is(0.5) && { full_name: 'Twice' }) });
    }
    const file = files.write(`round.ndjson`, toLines(lines));
    const options = ['--deactivate-missing', '--prefix', `${SEED}.${round}.`, '--max-deactivated', '100%'];
    const flags = ['--adopt', '--reactivate'].filter(() => is(0.5));
    const rejected = files.pathOf('rejected.ndjson');
    const start = () =>
      startCommand(['sync', file, ...options, ...flags, '--rejected', rejected], {
        ...variables,
        USERS_URL: front.url,
      });

    const stopOthers = repeat(async () => {
      const { id } = before[below(before.length)] ?? {};
      const change = is(0.5) ? { full_name: `By another ${below(99)}` } : { is_active: is(0.5) };
      await call('PATCH', String(id), change);
      await sleep(below(15));
    });
    const first = start();
    if (is(0.6)) {
      await sleep(150 + below(500));
      first.signal('SIGKILL');
    }
    await first.ended;
    await stopOthers();
    const last = await start().ended;
    const refused = new Set(files.lines('rejected.ndjson').map(({ external_id }) => external_id));
    const after = await list();
    const again = await start().ended;
    const unchanged = await list();

    expect([0, 3], `${round}: ${last.stderr}`).toContain(last.code);
    const byKey = new Map(after.map((user) => [user.external_id, user]));
    for (const line of lines.filter(({ external_id }) => !refused.has(external_id)))
      expect(byKey.get(line.external_id), `${round}: ${last.stderr}`).toMatchObject(line);
    // Nobody is deleted, and only users of the prefix without a line are deactivated.
    const ids = new Set(after.map(({ id }) => id));
    expect(before.filter(({ id }) => !ids.has(id))).toEqual([]);
    const wanted = new Set(lines.map(({ external_id }) => external_id));
    for (const user of after.filter(
      ({ external_id }) => external_id !== undefined && !wanted.has(external_id),
    ))
      expect(user.is_active).toBe(false);
    expect(again.stderr).toMatch(/created 0, updated 0, deactivated 0, /);
    expect(unchanged).toEqual(after);
    expect(unread).toEqual([]);
  }
  await front.stop();
});
