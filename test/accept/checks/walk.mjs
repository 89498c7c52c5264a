import { demand, same } from '../expect.mjs';
import { nextOf } from '../links.mjs';

const USERS = '/api/v1/users/';

/** A walk by links has every user exactly once, beside writes. */
export async function walk({ check, call, newUser, patch, remove }) {
  await check('a user that exists during the whole walk is in it exactly once', async () => {
    const created = [];
    for (let count = 0; count < 6; count += 1) created.push(await newUser());
    const [first] = created;
    const after = new Date(Date.parse(first.created_at) - 1).toISOString();
    const seen = [];
    let target = `${USERS}?created_after=${after}&limit=1`;
    for (let pages = 0; target && pages < 200 && !created.every(({ id }) => seen.includes(id)); pages += 1) {
      const answer = await call('GET', target);
      seen.push(...answer.body.map(({ id }) => id));
      target = nextOf(answer);
      // The user that was just read is deleted, a later one is changed, and another is created.
      if (pages === 0) await remove(first.id);
      if (pages === 1) await patch(created[4].id, { full_name: 'Changed', is_active: false });
      if (pages === 2) await newUser();
    }
    const own = seen.filter((id) => created.some((user) => user.id === id));
    same(
      own,
      created.map(({ id }) => id),
      'the users that were seen',
    );
    demand(new Set(seen).size === seen.length, 'a user occurs twice');
  });
}
