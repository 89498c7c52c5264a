import { anything, demand, differences } from '../expect.mjs';
import { nextOf } from '../links.mjs';
import { TIMESTAMP, text, UUID } from '../responses.mjs';

const CHANGES = '/api/v1/users/changes';
const UNKNOWN = '/api/v1/users/00000000-0000-0000-0000-000000000000/changes';
const FIELDS = ['email', 'full_name', 'is_active'];

/** A complete change. `fields` are known. */
export const change = (fields = {}) => ({
  specversion: '1.0',
  id: /^\d+-[\da-f]{8}$/,
  source: '/api/v1/users',
  type: /^user\.(created|updated|deleted)$/,
  subject: UUID,
  time: TIMESTAMP,
  datacontenttype: 'application/json',
  data: {
    version: anything('‹a version›', (value) => Number.isInteger(value) && value > 0),
    changed: anything(
      '‹names of fields›',
      (value) => Array.isArray(value) && value.every((one) => FIELDS.includes(one)),
    ),
    actor: text,
    request_id: text,
  },
  ...fields,
});

const positionOf = ({ id }) => BigInt(id.split('-')[0]);

/** A list of complete changes, in the order of their positions. */
export const changeList = anything('‹a list of whole changes in order›', (value) => {
  if (!Array.isArray(value)) return false;
  const isWhole = value.every((one) => differences(one, change()).length === 0);
  return (
    isWhole && value.every((one, index) => index === 0 || positionOf(one) > positionOf(value[index - 1]))
  );
});

const link = anything('‹a link to what comes next›', (value) => /^<.+>; rel="next"$/.test(value));

/** The feed, read from its current position. */
export async function changes({ check, skip, call, answers, succeeds, refuses }) {
  await check(
    '`cursor=now&limit=0` returns the head of the feed, after which no change is repeated',
    async () => {
      const head = succeeds(await call('GET', `${CHANGES}?cursor=now&limit=0`), 200, [], { link });
      const next = nextOf(head);
      demand(!/[?&]limit=0(&|$)/.test(next), 'the link asks for nothing');
      succeeds(await call('GET', next), 200, changeList, { link });
    },
  );
  await check(
    'the oldest changes come first, complete and in order, and the link leads to the next ones',
    async () => {
      const first = succeeds(await call('GET', `${CHANGES}?limit=2`), 200, changeList, { link });
      const second = succeeds(await call('GET', nextOf(first)), 200, changeList, { link });
      demand(changeList([...first.body, ...second.body]), 'the second page does not follow the first');
    },
  );
  await check('the feed is application/cloudevents-batch+json if the request accepts it', async () => {
    const type = 'application/cloudevents-batch+json';
    const answer = await call('GET', `${CHANGES}?limit=1`, { headers: { accept: type } });
    const isOfType = anything(type, (value) => value?.startsWith(type));
    succeeds(answer, 200, changeList, { link, 'content-type': isOfType });
  });
  await check('HEAD does not wait and has no body', async () => {
    const begun = performance.now();
    answers(await call('HEAD', `${CHANGES}?cursor=now&wait=20`), { status: 200, headers: { link } });
    demand(performance.now() - begun < 15_000, 'it waited');
  });
  await check('invalid values are 422', async () => {
    for (const [query, ...errors] of REFUSED)
      refuses(await call('GET', `${CHANGES}?${query}`), 'validation_error', { errors });
  });
  await check('the changes of an unknown user are 404', async () =>
    refuses(await call('GET', UNKNOWN), 'not_found_error'),
  );

  const { body: page } = await call('GET', `${CHANGES}?limit=1`).catch(() => ({}));
  const known = Array.isArray(page) ? page[0] : undefined;
  if (!known) return skip('the changes of one user', 'there are no changes');
  await check('the changes of one user contain no other user', async () => {
    const path = `/api/v1/users/${known.subject}/changes`;
    const { body } = succeeds(await call('GET', `${path}?limit=20`), 200, changeList, { link });
    demand(
      body.every(({ subject }) => subject === known.subject),
      'there are changes of another user',
    );
  });
}

const REFUSED = [
  ['limit=0', 'limit'],
  ['limit=1001', 'limit'],
  ['wait=21', 'wait'],
  ['wait=0.5', 'wait'],
  ['cursor=made-up', 'cursor'],
  ['exclude_actor=', 'exclude_actor'],
  ['wait=-1&limit=x', 'wait', 'limit'],
];
