import { demand, same } from '../expect.mjs';
import { nextOf } from '../links.mjs';

const USERS = '/api/v1/users/';

/** Of two concurrent writers, one succeeds. */
export async function races({ check, call, newUser, post, patch, get, ledger }) {
  const statusesOf = (answers) => answers.map(({ status }) => status).sort();
  const eight = (action) => Promise.all(Array.from({ length: 8 }, (_, index) => action(index)));

  await check('if eight requests create one email at once, one succeeds', async () => {
    const email = ledger.address();
    const answers = await eight((index) => post({ email: index % 2 ? email : email.toUpperCase() }));
    same(statusesOf(answers), [201, ...Array(7).fill(409)], 'the statuses');
    const { body } = await call('GET', `${USERS}?email=${encodeURIComponent(email)}`);
    same(body.length, 1, 'the number of users');
  });
  await check('if eight requests update one version at once, one succeeds', async () => {
    const { id } = await newUser();
    const answers = await eight((index) =>
      patch(id, { full_name: `Writer ${index}` }, { 'if-match': '"1"' }),
    );
    same(statusesOf(answers), [200, ...Array(7).fill(412)], 'the statuses');
    const winner = answers.find(({ status }) => status === 200);
    same((await get(id)).body, winner.body, 'the user');
  });
  await check('eight concurrent updates without a condition are all carried out', async () => {
    const { id } = await newUser();
    await eight((index) => patch(id, { full_name: `Writer ${index}` }));
    same((await get(id)).headers.etag, '"9"', 'the version');
  });
}

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
