import { same } from '../expect.mjs';

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
