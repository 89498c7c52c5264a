import { demand, same } from '../expect.mjs';
import { ACCEPT_PATCH, user } from '../responses.mjs';

const UNKNOWN = '00000000-0000-0000-0000-000000000000';

/** Updates of the given members, and of no others. */
export async function update({
  check,
  call,
  newUser,
  patch,
  get,
  ledger,
  succeeds,
  refuses,
  demandsIfMatch,
}) {
  await check('each member can be changed alone, which moves `updated_at` and the version', async () => {
    let known = await newUser({ full_name: 'Before' });
    const moved = ledger.address();
    const changes = [{ full_name: 'After' }, { is_active: false }, { email: moved }, { full_name: null }, {}];
    for (const [index, json] of changes.entries()) {
      const answer = await patch(known.id, json);
      const { updated_at } = answer.body;
      const expected = { ...known, ...json, updated_at };
      succeeds(answer, 200, user(expected), { etag: `"${index + 2}"` });
      demand(updated_at > known.updated_at, `updated_at is ${updated_at}, and was ${known.updated_at}`);
      succeeds(await get(known.id), 200, expected, { etag: `"${index + 2}"` });
      known = expected;
    }
  });
  await check('null does not change the email and is_active, and unknown members are ignored', async () => {
    const { updated_at: _, ...known } = await newUser({ full_name: 'Same' });
    const answer = await patch(known.id, { email: null, is_active: null, id: UNKNOWN, created_at: null });
    const { updated_at } = answer.body;
    succeeds(answer, 200, user({ ...known, updated_at }), { etag: '"2"' });
  });
  await check('the case of the email can be changed, but the email of another user is 409', async () => {
    const [one, other] = [await newUser(), await newUser()];
    const email = one.email.toUpperCase();
    const answer = await patch(one.id, { email });
    succeeds(answer, 200, user({ ...one, email, updated_at: answer.body.updated_at }), { etag: '"2"' });
    refuses(await patch(one.id, { email: other.email.toUpperCase(), full_name: 'x' }), 'conflict_error');
    same((await get(one.id)).body, answer.body, 'the user after the refusal');
  });
  await check('invalid values are 422, and change nothing', async () => {
    const known = await newUser();
    for (const [json, ...errors] of REFUSED)
      refuses(await patch(known.id, json), 'validation_error', { errors });
    succeeds(await get(known.id), 200, known, { etag: '"1"' });
  });
  await check('a merge patch is accepted, and another type is 415 with `Accept-Patch`', async () => {
    const { id } = await newUser();
    const merge = { 'if-match': '*', 'content-type': 'application/merge-patch+json' };
    same((await patch(id, { full_name: 'Merged' }, merge)).status, 200, 'the status');
    const text = { 'if-match': '*', 'content-type': 'text/plain' };
    const headers = { 'accept-patch': ACCEPT_PATCH };
    refuses(await patch(id, {}, text), 'unsupported_media_type_error', { headers });
  });
  await check('an unknown id is 404, and an invalid one is 422', async () => {
    refuses(await patch(UNKNOWN, { full_name: 'x' }), 'not_found_error');
    refuses(await patch('no-id', { full_name: 7 }), 'validation_error', {
      errors: ['user_id', '#/full_name'],
    });
  });
  const title = demandsIfMatch ? 'without `If-Match` it is 428' : 'it needs no `If-Match`';
  await check(title, async () => {
    const known = await newUser();
    const answer = await call('PATCH', `/api/v1/users/${known.id}`, { json: { full_name: 'x' } });
    if (demandsIfMatch) refuses(answer, 'precondition_required_error');
    else
      succeeds(answer, 200, user({ ...known, full_name: 'x', updated_at: answer.body.updated_at }), {
        etag: '"2"',
      });
  });
}

const REFUSED = [
  [{ email: 'nobody' }, '#/email'],
  [{ full_name: 7, is_active: 'yes' }, '#/full_name', '#/is_active'],
  [{ full_name: 'x'.repeat(256) }, '#/full_name'],
  [{ full_name: 'x', email: '' }, '#/email'],
];

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
