import { same } from '../expect.mjs';

const USERS = '/api/v1/users/';
const UNKNOWN = '00000000-0000-0000-0000-000000000000';

/** Deletions of users. */
export async function deletion({ check, call, newUser, remove, get, patch, post, succeeds, refuses }) {
  await check('a deleted user is found nowhere, and its email can be used again', async () => {
    const { id, email } = await newUser();
    succeeds(await remove(id), 204, '');
    refuses(await get(id), 'not_found_error');
    refuses(await patch(id, {}), 'not_found_error');
    refuses(await remove(id), 'not_found_error');
    same((await call('GET', `${USERS}?ids=${id}`)).body, [], 'the list');
    const again = await post({ email });
    same([again.status, again.body.id === id], [201, false], 'the status, and whether the id is the old one');
  });
  await check('an unknown id is 404, and an invalid one is 422', async () => {
    refuses(await remove(UNKNOWN), 'not_found_error');
    refuses(await remove('no-id'), 'validation_error', { errors: ['user_id'] });
  });
}
