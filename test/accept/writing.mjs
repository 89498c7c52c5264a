import { randomUUID } from 'node:crypto';
import { CHANGES, demand, same, UNKNOWN, USERS } from './deployment.mjs';

const JSON_TYPE = { 'content-type': 'application/json' };
const addressed = (email) => `${USERS}?email=${encodeURIComponent(email)}`;

/** All checks that write, in the order of the report. Each creates the users that it needs. */
export const WRITES = {
  Create: create,
  'Update and delete': update,
  'Conditions of writes': conditions,
  'Idempotency-Key': idempotency,
  'Changes of this run': feed,
};

/** `known`, with the functions by which these checks write. */
export async function withWrites(known) {
  const { ask, send, ledger } = known;
  const post = (json, expected = 201, options = {}) => ask('POST', USERS, expected, { json, ...options });
  const conditional = (method) => (user, json, expected, options) =>
    ask(method, USERS + user.id, expected, { json, headers: { 'if-match': '*' }, ...options });
  return {
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
}

async function create({ check, ask, post, countOf, ledger, bodyLimit }) {
  await check('a created user has the values that were sent, and is read and listed with them', async () => {
    const email = ledger.address((unique) => `${unique}+Case@Example.COM`);
    const external_id = ledger.address((unique) => `${unique}+Id é`);
    const sent = { email, full_name: `Zoë 🌍 <check> "${'x'.repeat(239)}"`, external_id };
    const { body, headers, location } = await post(sent);
    const { id, created_at } = body;
    same(body, { ...sent, id, is_active: true, created_at, updated_at: created_at }, 'the user');
    same([headers.etag, headers['idempotency-replayed']], ['"1"', undefined], 'ETag, Idempotency-Replayed');
    await ask('GET', USERS + id, 200, { is: body, has: { etag: '"1"' } });
    await ask('GET', addressed(email.toLowerCase()), 200, { is: [body] });
    await ask('GET', `${USERS}?external_id=${encodeURIComponent(external_id)}`, 200, { is: [body] });
    const errors = ['#/email', '#/external_id'];
    await post({ email: email.toUpperCase(), external_id }, 'conflict_error', { errors });
    same(await countOf(email), 1, 'the number of users');
    await ask('GET', location, 200, { is: body });
  });
  await check('refused values are 422, and `errors` lists all of them', async () => {
    await post({ email: 'x', full_name: {} }, 'validation_error', { errors: ['#/email', '#/full_name'] });
    for (const body of ['', '{', Uint8Array.of(0x22, 0xff, 0x22)])
      await ask('POST', USERS, 'validation_error', { headers: JSON_TYPE, body });
  });
  await check('a body that is not declared as JSON is 415, and application/…+json is JSON', async () => {
    const body = new TextEncoder().encode(JSON.stringify({ email: ledger.address() }));
    for (const headers of [{ 'content-type': 'text/plain' }, { ...JSON_TYPE, 'content-encoding': 'gzip' }])
      await ask('POST', USERS, 'unsupported_media_type_error', { headers, body });
    await ask('POST', USERS, 201, { headers: { 'content-type': 'application/x+json; charset=utf-8' }, body });
  });
  await check(`a body of ${bodyLimit} bytes is accepted, and a larger one is 413`, async () => {
    const padded = (length) => ({ headers: JSON_TYPE, body: `{}${' '.repeat(length - 2)}` });
    await ask('POST', USERS, 'payload_too_large_error', padded(bodyLimit + 1));
    await ask('POST', USERS, 'validation_error', { ...padded(bodyLimit), errors: ['#/email'] });
  });
}

async function update({ check, ask, post, newUser, patch, remove, requiresIfMatch }) {
  await check('each member can be changed alone, which moves `updated_at` and the version', async () => {
    let known = await newUser({ full_name: 'Before' });
    for (const [json, etag] of [
      [{ is_active: false }, '"2"'],
      [{ full_name: null }, '"3"'],
    ]) {
      const { body } = await patch(known, json, 200, { has: { etag } });
      same(body, { ...known, ...json, updated_at: body.updated_at }, 'the user');
      demand(body.updated_at > known.updated_at, `updated_at is ${body.updated_at}`);
      known = (await ask('GET', USERS + known.id, 200, { is: body })).body;
    }
  });
  await check(requiresIfMatch ? 'without `If-Match` it is 428' : 'it needs no `If-Match`', async () => {
    const expected = requiresIfMatch ? 'precondition_required_error' : 200;
    await patch(await newUser(), {}, expected, { headers: {} });
  });
  await check('a deleted user is found nowhere, and its email can be used again', async () => {
    const known = await newUser();
    await remove(known);
    await ask('GET', USERS + known.id, 'not_found_error');
    await remove(known, 'not_found_error');
    const { body } = await post({ email: known.email });
    demand(body.id !== known.id, 'the new user has the id of the old one');
  });
}

/** A write applies only to the version that it names. */
async function conditions({ check, ask, newUser, patch, remove }) {
  await check('a write of the current version is carried out once, and one of another is 412', async () => {
    const known = await newUser();
    for (const condition of [{ 'if-match': '"2"' }, { 'if-match': 'W/"1"' }, { 'if-none-match': '*' }]) {
      const headers = { 'if-match': '"1"', ...condition };
      await patch(known, { full_name: 'Lost' }, 'precondition_failed_error', { headers });
      await remove(known, 'precondition_failed_error', { headers });
    }
    await ask('GET', USERS + known.id, 200, { is: known });
    const headers = { 'if-match': '"7", "1"' };
    await patch(known, { full_name: 'Kept' }, 200, { headers, has: { etag: '"2"' } });
    await patch(known, { full_name: 'Lost' }, 'precondition_failed_error', { headers });
    await remove(known, 204, { headers: { 'if-match': '"2"' } });
  });
}

/** A create that is repeated under its key is carried out once. */
async function idempotency({ check, ask, post, patch, remove, countOf, ledger }) {
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
  await check('a batch returns the users in the order of its items, once per key', async () => {
    const json = { items: [{ email: ledger.address() }, { email: ledger.address() }] };
    const headers = { 'idempotency-key': randomUUID() };
    const send = (replayed, is) =>
      ask('POST', `${USERS}batch`, 201, { json, headers, has: { 'idempotency-replayed': replayed }, is });
    const { body } = await send(undefined);
    await send('true', body);
    same(
      body.map(({ email }) => email),
      json.items.map(({ email }) => email),
      'the emails',
    );
  });
}

/** Every write of this run is in the feed, once and in order. */
async function feed({ check, ask, newUser, patch, remove, post, ledger }) {
  const head = async () => (await ask('GET', `${CHANGES}?cursor=now&limit=0`, 200)).next;
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
  const title = 'a create, an update and a deletion appear at once, with their caller and no values';
  await check(title, async () => {
    const [from, id] = [await head(), randomUUID()];
    const json = { email: ledger.address(), full_name: 'Not to be read' };
    const { body: user } = await post(json, 201, { id });
    await patch(user, { full_name: 'x', is_active: false }, 200);
    await remove(user);
    const own = (await following(from)).filter(({ subject }) => subject === user.id);
    const summary = own.map(({ type, data: { version, changed } }) => [type, version, ...changed].join());
    same(summary, ['user.created,1', 'user.updated,2,full_name,is_active', 'user.deleted,3'], 'the changes');
    same([own[0].time, own[0].data.request_id], [user.created_at, id], 'the time and the request ID');
    demand(!/Not to be read|@/.test(JSON.stringify(own)), 'a value is in a change');
    await ask('GET', `${USERS}${user.id}/changes`, 200, { is: own });
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
    await ask('GET', `${CHANGES}?cursor=now&wait=1`, 200);
    demand(performance.now() - begun < 25_000, 'it took too long');
  });
}
