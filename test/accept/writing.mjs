import { randomUUID } from 'node:crypto';
import { demand, same } from './deployment.mjs';

const USERS = '/api/v1/users/';
const CHANGES = `${USERS}changes`;
const UNKNOWN = `${USERS}00000000-0000-0000-0000-000000000000`;
const JSON_TYPE = { 'content-type': 'application/json' };
const addressed = (email) => `${USERS}?email=${encodeURIComponent(email)}`;

/** All checks that write, in the order of the report. Each creates the users that it needs. */
const GROUPS = {
  Create: create,
  'Update and delete': update,
  'Conditions of writes': conditions,
  'Idempotency-Key': idempotency,
  Batch: batch,
  'Changes of this run': feed,
};

export async function writes(known, report) {
  const { ask, send, ledger } = known;
  const post = (json, expected = 201, options = {}) => ask('POST', USERS, expected, { json, ...options });
  const conditional = (method) => (user, json, expected, options) =>
    ask(method, USERS + user.id, expected, { json, headers: { 'if-match': '*' }, ...options });
  const deployment = {
    ...known,
    post,
    newUser: async (fields) => (await post({ email: ledger.address(), ...fields })).body,
    /** With `If-Match: *`, so that it works with and without SVC_REQUIRE_IF_MATCH. */
    patch: conditional('PATCH'),
    remove: (user, expected = 204, options = {}) => conditional('DELETE')(user, undefined, expected, options),
    countOf: async (email) => (await ask('GET', addressed(email), 200)).body.length,
    /** Whether the deployment has SVC_REQUIRE_IF_MATCH. This needs no user. */
    requiresIfMatch: (await send('DELETE', UNKNOWN).catch(() => ({}))).status === 428,
  };
  for (const [title, group] of Object.entries(GROUPS)) {
    report.group(title);
    await group(deployment);
  }
}

async function create({ check, ask, post, countOf, ledger, bodyLimit }) {
  await check('a created user has the values that were sent, and is read and listed with them', async () => {
    const email = ledger.address((unique) => `${unique}+Case@Example.COM`);
    const external_id = ledger.address((unique) => `${unique}+Id é`);
    const sent = { email, full_name: `Zoë 🌍 <check> "${'x'.repeat(239)}"`, external_id };
    const { body, headers } = await post(sent);
    const { id, created_at } = body;
    same(body, { ...sent, id, is_active: true, created_at, updated_at: created_at }, 'the user');
    same([headers.etag, headers['idempotency-replayed']], ['"1"', undefined], 'ETag, Idempotency-Replayed');
    await ask('GET', USERS + id, 200, { is: body, has: { etag: '"1"' } });
    await ask('GET', addressed(email.toLowerCase()), 200, { is: [body] });
    await ask('GET', `${USERS}?external_id=${encodeURIComponent(external_id)}`, 200, { is: [body] });
    for (const [json, ...errors] of [
      [{ email: ledger.address(), external_id }, '#/external_id'],
      [{ email, external_id }, '#/email', '#/external_id'],
    ])
      await post(json, 'conflict_error', { errors });
    await post({ email: email.toUpperCase() }, 'conflict_error');
    same(await countOf(email), 1, 'the number of users');
  });
  await check('`Location` leads to the user, and members that create does not know are ignored', async () => {
    const email = ledger.address();
    const { body, location } = await post({ email, is_active: false, id: UNKNOWN, created_at: 1 });
    same([body.email, body.is_active, body.full_name], [email, true, null], 'email, is_active, full_name');
    await ask('GET', location, 200, { is: body });
  });
  await check('refused values are 422, and `errors` lists all of them', async () => {
    await post({ email: 'x', full_name: {} }, 'validation_error', { errors: ['#/email', '#/full_name'] });
    await post({ email: 'a\u0000@b', external_id: '' }, 'validation_error', {
      errors: ['#/email', '#/external_id'],
    });
    for (const body of ['', '{', 'null', '{"email":"a@b"} x', Uint8Array.of(0x22, 0xff, 0x22)])
      await ask('POST', USERS, 'validation_error', { headers: JSON_TYPE, body });
  });
  await check('a body that is not declared as JSON is 415, and application/…+json is JSON', async () => {
    const body = new TextEncoder().encode(JSON.stringify({ email: ledger.address() }));
    for (const headers of [
      {},
      { 'content-type': 'text/plain' },
      { ...JSON_TYPE, 'content-encoding': 'gzip' },
    ])
      await ask('POST', USERS, 'unsupported_media_type_error', { headers, body });
    await ask('POST', USERS, 201, { headers: { 'content-type': 'application/x+json; charset=utf-8' }, body });
  });
  await check(`a body of ${bodyLimit} bytes is accepted, and a larger one is 413`, async () => {
    const padded = (length) => ({ headers: JSON_TYPE, body: `{}${' '.repeat(length - 2)}` });
    await ask('POST', USERS, 'payload_too_large_error', padded(bodyLimit + 1));
    await ask('POST', USERS, 'validation_error', { ...padded(bodyLimit), errors: ['#/email'] });
  });
}

async function update({ check, ask, post, newUser, patch, remove, ledger, requiresIfMatch }) {
  await check('each member can be changed alone, which moves `updated_at` and the version', async () => {
    let known = await newUser({ full_name: 'Before' });
    const written = [{ full_name: 'After' }, { is_active: false }, { email: ledger.address() }];
    for (const [index, json] of [...written, { full_name: null }, { email: null, id: UNKNOWN }].entries()) {
      const { body } = await patch(known, json, 200, { has: { etag: `"${index + 2}"` } });
      const kept = json.id ? known : { ...known, ...json };
      same(body, { ...kept, updated_at: body.updated_at }, 'the user');
      demand(body.updated_at > known.updated_at, `updated_at is ${body.updated_at}`);
      known = (await ask('GET', USERS + known.id, 200, { is: body })).body;
    }
  });
  await check('a refused update changes nothing', async () => {
    const [known, other] = [await newUser(), await newUser()];
    await patch(known, { full_name: 'x', email: other.email.toUpperCase() }, 'conflict_error');
    const errors = ['#/full_name', '#/is_active'];
    await patch(known, { full_name: 7, is_active: 'yes' }, 'validation_error', { errors });
    await ask('GET', USERS + known.id, 200, { is: known });
    for (const [type, expected] of [
      ['text/plain', 'unsupported_media_type_error'],
      ['application/merge-patch+json', 200],
    ])
      await patch(known, {}, expected, { headers: { 'if-match': '*', 'content-type': type } });
  });
  await check(requiresIfMatch ? 'without `If-Match` it is 428' : 'it needs no `If-Match`', async () => {
    const expected = requiresIfMatch ? 'precondition_required_error' : 200;
    await patch(await newUser(), {}, expected, { headers: {} });
  });
  await check('a deleted user is found nowhere, and its email can be used again', async () => {
    const known = await newUser();
    await remove(known);
    await ask('GET', USERS + known.id, 'not_found_error');
    await patch(known, {}, 'not_found_error');
    await remove(known, 'not_found_error');
    await ask('GET', `${USERS}?ids=${known.id}`, 200, { is: [] });
    const { body } = await post({ email: known.email });
    demand(body.id !== known.id, 'the new user has the id of the old one');
  });
}

/** A write applies only to the version that it names. */
async function conditions({ check, ask, newUser, patch, remove }) {
  await check('a write of another version than the current one is 412, and changes nothing', async () => {
    const known = await newUser();
    for (const headers of [{ 'if-match': '"2"' }, { 'if-match': 'W/"1"' }, { 'if-none-match': '*' }]) {
      const refused = { headers: { 'if-match': '"1"', ...headers } };
      await patch(known, { full_name: 'Lost' }, 'precondition_failed_error', refused);
      await remove(known, 'precondition_failed_error', refused);
    }
    await ask('GET', USERS + known.id, 200, { is: known });
  });
  await check('a write of the current version is carried out once', async () => {
    const known = await newUser();
    const options = { headers: { 'if-match': '"7", "1"' } };
    await patch(known, { full_name: 'Kept' }, 200, { ...options, has: { etag: '"2"' } });
    await patch(known, { full_name: 'Lost' }, 'precondition_failed_error', options);
    same((await ask('GET', USERS + known.id, 200)).body.full_name, 'Kept', 'full_name');
    await remove(known, 204, { headers: { 'if-match': '"2"' } });
  });
}

/** A create that is repeated under its key is carried out once. */
async function idempotency({ check, post, patch, remove, countOf, ledger }) {
  const keyed = (json, key, expected, has = { 'idempotency-replayed': undefined }) =>
    post(json, expected, { headers: { 'idempotency-key': key }, ...(expected === 201 && { has }) });
  await check('a repeated request returns the user as it is now, marked as a replay, or 410', async () => {
    const [email, key] = [ledger.address(), randomUUID()];
    const { body: user, location } = await keyed({ email }, key, 201);
    const { body: changed } = await patch(user, { full_name: 'Changed' }, 200);
    for (const again of [key, `"${key}"`]) {
      const replay = await keyed({ email, full_name: null }, again, 201, { 'idempotency-replayed': 'true' });
      same([replay.body, replay.headers.etag], [changed, '"2"'], 'the user and its version');
      same(replay.location, location, 'Location');
    }
    same(await countOf(email), 1, 'the number of users');
    await keyed({ email, full_name: 'x' }, key, 'idempotency_key_reused_error');
    await remove(user);
    await keyed({ email }, key, 'gone_error');
  });
  await check('a refused request leaves nothing under its key, and an invalid key is 422', async () => {
    const [email, key] = [ledger.address(), randomUUID()];
    const { body: other } = await post({ email });
    await keyed({ email }, key, 'conflict_error');
    await remove(other);
    await keyed({ email }, key, 201);
    for (const invalid of ['one two', 'a,b']) await keyed({ email }, invalid, 'validation_error');
  });
}

/** Many users in one request. */
async function batch({ check, ask, newUser, countOf, ledger }) {
  const send = (items, mode, expected, options = {}) =>
    ask('POST', `${USERS}batch`, expected, { json: { items, mode }, ...options });
  const items = (count) => Array.from({ length: count }, () => ({ email: ledger.address() }));
  const emails = (users) => users.map(({ email }) => email);
  await check('an atomic batch returns the users in the order of its items, once per key', async () => {
    const [sent, headers] = [items(3), { 'idempotency-key': randomUUID() }];
    const { body } = await send(sent, undefined, 201, {
      headers,
      has: { 'idempotency-replayed': undefined },
    });
    same(emails(body), emails(sent), 'the emails');
    const has = { 'idempotency-replayed': 'true' };
    await send(sent, 'atomic', 201, { headers, has, is: body });
    for (const { email } of sent) same(await countOf(email), 1, `the users with ${email}`);
  });
  await check('a batch with a refused item stores nothing, and names every refused item', async () => {
    const [fresh] = items(1);
    const taken = await newUser();
    for (const [others, expected, ...errors] of [
      [[{ email: taken.email.toUpperCase() }], 'conflict_error', '#/items/1/email'],
      [
        [{ email: 'x' }, { email: 'a@b', full_name: 7 }],
        'validation_error',
        '#/items/1/email',
        '#/items/2/full_name',
      ],
      [[fresh], 'validation_error', '#/items/1/email'],
    ])
      await send([fresh, ...others], 'atomic', expected, { errors });
    same(await countOf(fresh.email), 0, 'the users with the first email');
    await send([], 'some', 'validation_error', { errors: ['#/items', '#/mode'] });
  });
  await check('a partial batch stores the valid items, and has a result for each item', async () => {
    const [fresh, late] = items(2);
    const taken = await newUser();
    const sent = [fresh, { email: taken.email }, { email: 'x' }, { email: fresh.email }, late];
    const { body } = await send(sent, 'partial', 200);
    const results = body.map(({ status, user, problem }) => [status, user?.email ?? problem.type]);
    const refused = (status, code) => [status, `urn:svc:error:${code}`];
    const conflict = refused(409, 'conflict_error');
    const invalid = refused(422, 'validation_error');
    same(results, [[201, fresh.email], conflict, invalid, conflict, [201, late.email]], 'the results');
    for (const { email } of [fresh, late]) same(await countOf(email), 1, `the users with ${email}`);
  });
}

/** Every write of this run is in the feed, once and in order. */
async function feed({ check, ask, newUser, patch, remove, post, ledger }) {
  const head = async (query = '') => (await ask('GET', `${CHANGES}?cursor=now&limit=0${query}`, 200)).next;
  /** The changes after a link, to the current end. */
  async function following(target) {
    const seen = [];
    for (let next = target; ; ) {
      const page = await ask('GET', next, 200);
      if (page.body.length === 0) return seen;
      seen.push(...page.body);
      next = page.next;
    }
  }
  let actor = '';
  await check(
    'a create, an update and a deletion appear at once, with their caller and no values',
    async () => {
      const [from, id] = [await head(), randomUUID()];
      const { body: user } = await post({ email: ledger.address(), full_name: 'Not to be read' }, 201, {
        id,
      });
      const { body: updated } = await patch(user, { full_name: 'x', is_active: false }, 200);
      await patch(user, {}, 200);
      await remove(user);
      const own = (await following(from)).filter(({ subject }) => subject === user.id);
      const summary = own.map(({ type, data: { version, changed } }) => [type, version, changed]);
      same(
        summary,
        [
          ['user.created', 1, []],
          ['user.updated', 2, ['full_name', 'is_active']],
          ['user.updated', 3, []],
          ['user.deleted', 4, []],
        ],
        'the changes',
      );
      same([own[0].time, own[1].time], [user.created_at, updated.updated_at], 'the times');
      same(own[0].data.request_id, id, 'the request ID');
      demand(!/Not to be read|@/.test(JSON.stringify(own)), 'a value is in a change');
      await ask('GET', `${USERS}${user.id}/changes`, 200, { is: own });
      [{ actor }] = own.map(({ data }) => data);
    },
  );
  await check('a page of any size begins where the one before ended', async () => {
    const from = await head();
    const created = [];
    for (let count = 0; count < 5; count += 1) created.push((await newUser()).id);
    const seen = await following(from.replace(/([?&]limit=)\d+|$/, (_, name) => `${name ?? '&limit='}2`));
    const own = seen.map(({ subject }) => subject).filter((subject) => created.includes(subject));
    same(own, created, 'the users of the changes');
  });
  await check('`exclude_actor` leaves out the changes of this caller', async () => {
    const next = await head(`&exclude_actor=${encodeURIComponent(actor)}`);
    const { id } = await newUser();
    const seen = await following(next);
    demand(!seen.some(({ subject }) => subject === id), 'its change is there');
  });
  await check('a waiting request ends as soon as there is a change, otherwise in time', async () => {
    const begun = performance.now();
    const from = await head();
    const waiting = ask('GET', `${from}&wait=8`, 200);
    const { id } = await newUser();
    const { body, next } = await waiting;
    const seen = [...body, ...(await following(next.replace(/[?&]wait=8/, '')))];
    demand(
      seen.some(({ subject }) => subject === id),
      'the change is missing',
    );
    await ask('GET', `${CHANGES}?cursor=now&exclude_actor=${encodeURIComponent(actor)}&wait=1`, 200);
    demand(performance.now() - begun < 25_000, 'it took too long');
  });
}
