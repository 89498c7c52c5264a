import { demand, same } from '../expect.mjs';
import { user } from '../responses.mjs';

const USERS = '/api/v1/users/';

/** Creates of users, and their refusals. */
export async function create({ check, call, post, get, ledger, succeeds, refuses, bodyLimit }) {
  await check('a user is created, and a read returns the same user', async () => {
    const email = ledger.address((unique) => `${unique}+Case@Example.COM`);
    const answer = await post({ email, full_name: 'Zoë 🌍 <Acceptance> "check"' });
    const { body } = answer;
    const expected = user({ email, full_name: 'Zoë 🌍 <Acceptance> "check"', is_active: true });
    succeeds(answer, 201, expected, { location: USERS + body.id, etag: '"1"' });
    same(body.updated_at, body.created_at, 'updated_at');
    demand(Math.abs(Date.parse(body.created_at) - Date.now()) < 300_000, `created_at is ${body.created_at}`);
    succeeds(await get(body.id), 200, body, { etag: '"1"' });
    const [listed] = (await call('GET', `${USERS}?email=${encodeURIComponent(email.toLowerCase())}`)).body;
    same(listed, body, 'the user as it is listed');
  });
  await check('a missing member has its default, and unknown members are ignored', async () => {
    const email = ledger.address();
    const given = {
      email,
      is_active: false,
      id: '00000000-0000-0000-0000-000000000000',
      created_at: 1,
      color: 'red',
    };
    succeeds(await post(given), 201, user({ email, full_name: null, is_active: true }), { etag: '"1"' });
  });
  await check('every user has an id of its own', async () => {
    const created = [];
    for (let count = 0; count < 3; count += 1)
      created.push((await post({ email: ledger.address() })).body.id);
    same(new Set(created).size, 3, 'the number of ids');
  });
  await check('an email and a name of 255 characters are accepted, counted as characters', async () => {
    const email = ledger.address((unique) => `${unique}${'é'.repeat(255 - unique.length - 4)}@x.y`);
    const full_name = '🌍'.repeat(255);
    succeeds(await post({ email, full_name }), 201, user({ email, full_name }), { etag: '"1"' });
  });
  await check('an email is taken in any case (409), and nothing is stored', async () => {
    const email = ledger.address((unique) => `${unique}@taken.example`);
    const { body } = await post({ email, full_name: 'First' });
    for (const again of [email, email.toUpperCase()])
      refuses(await post({ email: again, full_name: 'Second' }), 'conflict_error');
    const { body: listed } = await call('GET', `${USERS}?email=${encodeURIComponent(email)}`);
    same(listed, [body], 'the users with this email');
  });
  await check('an external id is stored, found and unique, compared exactly (409)', async () => {
    const external_id = ledger.address((unique) => `${unique}+Id é`);
    const { body } = await post({ email: ledger.address(), external_id });
    same(body.external_id, external_id, 'external_id');
    const found = await call('GET', `${USERS}?external_id=${encodeURIComponent(external_id)}`);
    same(found.body, [body], 'the users with this external id');
    const other = external_id.toUpperCase();
    const { body: listed } = await call('GET', `${USERS}?external_id=${encodeURIComponent(other)}`);
    same(listed, [], 'the users with it in another case');
    for (const [email, ...errors] of [
      [ledger.address(), '#/external_id'],
      [body.email, '#/email', '#/external_id'],
    ])
      refuses(await post({ email, external_id }), 'conflict_error', { errors });
    same((await get(body.id)).body, body, 'the user after the refusals');
  });
  await check('invalid values are 422, and `errors` lists all of them', async () => {
    for (const [json, ...errors] of refused(ledger))
      refuses(await post(json), 'validation_error', { errors });
  });
  await check('a body that is not a JSON object is 422', async () => {
    const headers = { 'content-type': 'application/json' };
    const broken = ['', '{', 'null', '[]', '"x"', '1', '{"email":"a@b"} x', Uint8Array.of(0x22, 0xff, 0x22)];
    for (const body of broken) {
      const { status, body: problem } = await call('POST', USERS, { headers, body });
      same([status, problem.type], [422, 'urn:svc:error:validation_error'], `the refusal of ${body}`);
    }
  });
  await check('a body that is not declared as JSON, or is encoded, is 415', async () => {
    const body = new TextEncoder().encode(JSON.stringify({ email: ledger.address() }));
    for (const headers of [
      {},
      { 'content-type': 'text/plain' },
      { 'content-type': 'application/json', 'content-encoding': 'gzip' },
    ])
      refuses(await call('POST', USERS, { headers, body }), 'unsupported_media_type_error');
  });
  await check('application/…+json is JSON, too', async () => {
    const headers = { 'content-type': 'application/vnd.example+json; charset=utf-8' };
    const email = ledger.address();
    succeeds(await post({ email }, { headers }), 201, user({ email }), { etag: '"1"' });
  });
  await check(`a body of ${bodyLimit} bytes is accepted, and a larger one is 413`, async () => {
    const headers = { 'content-type': 'application/json' };
    const padded = (length) => `{}${' '.repeat(length - 2)}`;
    refuses(await call('POST', USERS, { headers, body: padded(bodyLimit + 1) }), 'payload_too_large_error');
    const whole = await call('POST', USERS, { headers, body: padded(bodyLimit) });
    refuses(whole, 'validation_error', { errors: ['#/email'] });
  });
}

function refused(ledger) {
  const email = ledger.address();
  return [
    [{}, '#/email'],
    [{ email: null }, '#/email'],
    [{ email: 7 }, '#/email'],
    [{ email: '' }, '#/email'],
    [{ email: 'nobody' }, '#/email'],
    [{ email: '@example.com' }, '#/email'],
    [{ email: 'a@b@c' }, '#/email'],
    [{ email: 'a b@example.com' }, '#/email'],
    [{ email: 'a\u0000@example.com' }, '#/email'],
    [{ email: `${'a'.repeat(250)}@x.yz1` }, '#/email'],
    [{ email, full_name: 'x'.repeat(256) }, '#/full_name'],
    [{ email, full_name: 7 }, '#/full_name'],
    [{ email, full_name: 'a\u0000b' }, '#/full_name'],
    [{ email, full_name: '\ud800' }, '#/full_name'],
    [{ email, external_id: '' }, '#/external_id'],
    [{ email, external_id: 'x'.repeat(256) }, '#/external_id'],
    [{ email, external_id: 'a\tb' }, '#/external_id'],
    [{ email, external_id: 7 }, '#/external_id'],
    [{ email: 'x', full_name: {} }, '#/email', '#/full_name'],
  ];
}
