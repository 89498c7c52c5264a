import { randomUUID } from 'node:crypto';
import { demand, same } from '../expect.mjs';
import { nextOf } from '../links.mjs';
import { change, changeList } from './changes.mjs';

const CHANGES = '/api/v1/users/changes';

/** Every write of this run is in the feed, once and in order. */
export async function feed({
  check,
  call,
  newUser,
  patch,
  remove,
  ledger,
  succeeds,
  refuses,
  requestIdHeader,
}) {
  /** The changes after a link, to the current end. */
  async function following(target) {
    const seen = [];
    for (;;) {
      const answer = succeeds(await call('GET', target), 200, changeList, {});
      target = nextOf(answer);
      if (answer.body.length === 0) return { seen, next: target };
      seen.push(...answer.body);
    }
  }
  const head = async () => nextOf(await call('GET', `${CHANGES}?cursor=now&limit=0`));

  let actor;
  await check(
    'a create, an update and a deletion appear at once, with their caller and the changed fields',
    async () => {
      const from = await head();
      const [id, updateId] = [randomUUID(), randomUUID()];
      const email = ledger.address();
      const headers = { [requestIdHeader]: id };
      const { body: created } = await call('POST', '/api/v1/users/', { json: { email }, headers });
      const { body: updated } = await patch(
        created.id,
        { full_name: 'x', is_active: false },
        { 'if-match': '*', [requestIdHeader]: updateId },
      );
      await patch(created.id, {});
      await remove(created.id);
      const { seen } = await following(from);
      const own = seen.filter(({ subject }) => subject === created.id);
      actor = own[0]?.data.actor;
      const about = (type, version, changed, fields = {}) =>
        change({
          type: `user.${type}`,
          subject: created.id,
          data: { ...change().data, version, changed, actor, ...fields.data },
          ...fields.rest,
        });
      same(
        own,
        [
          about('created', 1, [], { rest: { time: created.created_at }, data: { request_id: id } }),
          about('updated', 2, ['full_name', 'is_active'], {
            rest: { time: updated.updated_at },
            data: { request_id: updateId },
          }),
          about('updated', 3, []),
          about('deleted', 4, []),
        ],
        'the changes',
      );
      const { body: itsOwn } = await call('GET', `/api/v1/users/${created.id}/changes`);
      same(itsOwn, own, 'the changes of this user alone');
    },
  );
  await check('no change contains values', async () => {
    const from = await head();
    const { email } = await newUser({ full_name: 'Nobody may read this' });
    const { seen } = await following(from);
    demand(!JSON.stringify(seen).includes(email), 'the email is in a change');
    demand(!JSON.stringify(seen).includes('Nobody may read this'), 'the name is in a change');
  });
  await check('a page of any size begins where the one before ended', async () => {
    const from = await head();
    const created = [];
    for (let count = 0; count < 5; count += 1) created.push((await newUser()).id);
    const { seen } = await following(
      from.replace(/([?&]limit=)\d+|$/, (_, name) => (name ? `${name}2` : '&limit=2')),
    );
    const own = seen.filter(({ subject }) => created.includes(subject));
    same(
      own.map(({ subject }) => subject),
      created,
      'the users of the changes',
    );
  });
  await check('`exclude_actor` leaves out the changes of this caller', async () => {
    const next = nextOf(
      await call('GET', `${CHANGES}?cursor=now&limit=0&exclude_actor=${encodeURIComponent(actor)}`),
    );
    const { id } = await newUser();
    const { seen } = await following(next);
    demand(!seen.some(({ subject }) => subject === id), 'its change is there');
  });
  await check('a waiting request ends as soon as there is a change, otherwise in time', async () => {
    const begun = performance.now();
    const from = await head();
    const waiting = call('GET', `${from}&wait=8`);
    const { id } = await newUser();
    const answer = await waiting;
    succeeds(answer, 200, changeList, {});
    const { seen } = await following(nextOf(answer).replace(/[?&]wait=8/, ''));
    demand(
      [...answer.body, ...seen].some(({ subject }) => subject === id),
      'the change is missing',
    );
    const quiet = `${CHANGES}?cursor=now&exclude_actor=${encodeURIComponent(actor)}&wait=1`;
    succeeds(await call('GET', quiet), 200, changeList, {});
    demand(performance.now() - begun < 25_000, 'it took too long');
  });
  await check('a cursor of all changes is refused for the changes of one user (422)', async () => {
    const { id } = await newUser();
    const cursor = new URL(await head(), 'http://x').searchParams.get('cursor');
    const answer = await call('GET', `/api/v1/users/${id}/changes?cursor=${encodeURIComponent(cursor)}`);
    refuses(answer, 'validation_error', { errors: ['cursor'] });
  });
}
