import { anything, demand, same } from '../expect.mjs';
import { nextOf, steadily } from '../links.mjs';
import { users } from '../responses.mjs';

const USERS = '/api/v1/users/';
const anyLink = anything('‹any›', () => true);

/** Pages, order, filters, and invalid values. */
export async function list({ check, skip, call, succeeds, answers, refuses }) {
  const listed = async (query = '') =>
    succeeds(await call('GET', `${USERS}${query}`), 200, users, { link: anyLink }).body;

  await check('the list is an array of complete users, 100 at most, oldest first', async () => {
    const page = await listed();
    demand(page.length <= 100, `${page.length} users without a limit`);
    ascending(page);
  });
  await check('a trailing slash makes no difference', async () =>
    steadily(async () => {
      const bare = succeeds(await call('GET', '/api/v1/users?limit=3'), 200, users, { link: anyLink });
      same(bare.body, await listed('?limit=3'), 'the list');
    }),
  );
  await check('HEAD is the same without a body', async () => {
    const headers = {
      'content-type': 'application/json; charset=utf-8',
      'cache-control': 'private, no-cache',
    };
    answers(await call('HEAD', USERS), { status: 200, headers });
  });
  await check('an unknown parameter is ignored', async () =>
    demand((await listed('?color=red&limit=1')).length <= 1, ''),
  );
  await check('beyond its last user the list is empty, and without a link', async () => {
    const answer = await call('GET', `${USERS}?created_after=9999-12-31T23:59:59Z`);
    succeeds(answer, 200, [], { link: undefined });
  });
  await check('invalid values are 422, and `errors` lists all of them', async () => {
    for (const [query, ...errors] of REFUSED)
      refuses(await call('GET', `${USERS}?${query}`), 'validation_error', { errors });
  });

  const [known, other] = (await listed('?limit=2').catch(() => [])) ?? [];
  if (!known) return skip('pages, order and filters', 'there are no users');
  await check('filters: email in any case, ids, is_active, created_after and created_before', async () => {
    const { id, email, is_active, created_at } = known;
    const address = encodeURIComponent(email);
    await steadily(async () => {
      same(ids(await listed(`?email=${address}`)), [id], 'the list by email');
      if (isAscii(email))
        same(ids(await listed(`?email=${encodeURIComponent(swapped(email))}`)), [id], 'by case');
      same(
        ids(await listed(`?ids=${id},00000000-0000-0000-0000-000000000000,${id}`)),
        [id],
        'the list by ids',
      );
      same(ids(await listed(`?ids=${id}&is_active=${is_active}`)), [id], 'the list by is_active');
      same(await listed(`?ids=${id}&is_active=${!is_active}`), [], 'the list by the other is_active');
      same(await listed(`?ids=${id}&created_after=${created_at}`), [], 'the list after it');
      same(await listed(`?ids=${id}&created_before=${created_at}`), [], 'the list before it');
      const [before, after] = [-1, 1].map((step) => new Date(Date.parse(created_at) + step).toISOString());
      same(
        ids(await listed(`?ids=${id}&created_after=${before}&created_before=${after}`)),
        [id],
        'the list around',
      );
      same(await listed(`?email=${address}&ids=00000000-0000-0000-0000-000000000000`), [], 'both filters');
    });
    for (const value of [true, false])
      for (const user of await listed(`?is_active=${value}&limit=20`))
        demand(user.is_active === value, `is_active=${value} lists one that is ${user.is_active}`);
  });
  await check('`sort` reverses the order', async () => {
    ascending((await listed('?sort=-created_at&limit=50')).reverse());
    ascending(await listed('?sort=created_at&limit=50'));
    await steadily(async () => {
      const [newest] = await listed('?sort=-created_at&limit=1');
      const [oldest] = await listed('?limit=1');
      demand(newest.created_at >= oldest.created_at, 'the newest is older than the oldest');
    });
  });

  if (!other) return skip('pages by link', 'there are fewer than two users');
  await check('a walk by links equals the list, by cursor and by skip', async () => {
    for (const start of [
      '?limit=1',
      '?limit=1&skip=0',
      '?limit=1&skip=1',
      '?limit=2&sort=-created_at',
      '?limit=1&is_active=true',
    ])
      await steadily(() => walks(start));
  });
  async function walks(start) {
    const seen = [];
    let target = `${USERS}${start}`;
    for (let pages = 0; target && pages < 4; pages += 1) {
      const answer = succeeds(await call('GET', target), 200, users, { link: anyLink });
      seen.push(...answer.body);
      target = nextOf(answer);
    }
    const whole = await listed(start.replace(/limit=\d/, `limit=${Math.max(seen.length, 1)}`));
    same(ids(seen), ids(whole), `the walk from ${start}`);
    if (!target) return;
    const [beyond] = await listed(start.replace(/limit=\d/, `limit=${seen.length + 1}`)).then((all) =>
      all.slice(-1),
    );
    demand(beyond.id !== seen.at(-1).id, 'there is a link to a next page, and no next page');
  }
  await check('a link with other filters is 422', async () => {
    const answer = await call('GET', `${USERS}?limit=1`);
    const next = nextOf(answer);
    demand(next, 'there is no link, though there is a next page');
    refuses(await call('GET', `${next}&is_active=true`), 'validation_error', { errors: ['cursor'] });
  });
  await check('`skip` leaves out the first users', async () =>
    steadily(async () =>
      same(ids(await listed('?skip=1&limit=1')), ids((await listed('?limit=2')).slice(1)), 'it'),
    ),
  );
}

const REFUSED = [
  ['limit=0', 'limit'],
  ['limit=1001', 'limit'],
  ['limit=ten', 'limit'],
  ['limit=', 'limit'],
  ['limit=1&limit=2', 'limit'],
  ['skip=-1', 'skip'],
  ['skip=2147483648', 'skip'],
  ['skip=0x1&limit=1e2', 'skip', 'limit'],
  ['sort=email', 'sort'],
  ['is_active=yes', 'is_active'],
  ['ids=1', 'ids'],
  ['email=ada%20@example.com', 'email'],
  ['created_after=yesterday&created_before=2026-02-30T00:00:00Z', 'created_after', 'created_before'],
  ['cursor=made-up', 'cursor'],
];

const ids = (page) => page.map(({ id }) => id);
const isAscii = (text) => /^[\x20-\x7e]*$/.test(text);
const swapped = (text) =>
  [...text].map((c) => (c === c.toLowerCase() ? c.toUpperCase() : c.toLowerCase())).join('');

function ascending(page) {
  for (const [index, { created_at, id }] of page.entries()) {
    const before = page[index - 1];
    if (!before) continue;
    const isLater = created_at > before.created_at || (created_at === before.created_at && id > before.id);
    demand(isLater, `${id} (${created_at}) stands after ${before.id} (${before.created_at})`);
  }
}
