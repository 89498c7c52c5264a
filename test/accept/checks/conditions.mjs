import { same } from '../expect.mjs';
import { user } from '../responses.mjs';

/** A write applies only to the version that it names. */
export async function conditions({ check, newUser, patch, remove, get, succeeds, refuses }) {
  await check('an update of another version than the current one is 412, and changes nothing', async () => {
    const known = await newUser();
    for (const headers of [
      { 'if-match': '"2"' },
      { 'if-match': 'W/"1"' },
      { 'if-match': '1' },
      { 'if-none-match': '*' },
    ])
      refuses(
        await patch(known.id, { full_name: 'Lost' }, { 'if-match': '"1"', ...headers }),
        'precondition_failed_error',
      );
    succeeds(await get(known.id), 200, known, { etag: '"1"' });
  });
  await check('an update of the current version is carried out once', async () => {
    const known = await newUser();
    const headers = { 'if-match': '"7", "1"' };
    const answer = await patch(known.id, { full_name: 'Kept' }, headers);
    const expected = user({ ...known, full_name: 'Kept', updated_at: answer.body.updated_at });
    succeeds(answer, 200, expected, { etag: '"2"' });
    refuses(await patch(known.id, { full_name: 'Lost' }, headers), 'precondition_failed_error');
    same((await get(known.id)).body, answer.body, 'the user');
  });
  await check('a deletion of the current version is carried out once', async () => {
    const { id } = await newUser();
    refuses(await remove(id, { 'if-match': '"2"' }), 'precondition_failed_error');
    same((await get(id)).status, 200, 'the status after it');
    succeeds(await remove(id, { 'if-match': '"1"' }), 204, '');
  });
}
