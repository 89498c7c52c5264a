import { describe, expect, test } from 'vitest';
import { CHANGES, cursorIn, endOfFeed, nextOf } from '../stage/changes.ts';
import { invalid, success, USERS, type UserBody } from '../stage/responses.ts';
import { serviceUnderTest } from '../stage/service-under-test.ts';

const service = serviceUnderTest();
const { call, createUser } = service;

const of = ({ id }: Pick<UserBody, 'id'>) => `${USERS}${id}/changes`;
const link = (target: string) => ({ link: `<${target}>; rel="next"` });

describe('the link to the next page', () => {
  test('has the known parameters with their defaults, and no others', async () => {
    await createUser();
    const query = 'cursor=now&exclude_actor=a%26b%20%C3%A9&wait=1&limit=7&order=name';
    const cursor = cursorIn(await endOfFeed(call));
    const kept = `cursor=${cursor}&limit=7&exclude_actor=a%26b+%C3%A9&wait=1`;

    expect(await call('GET', `${CHANGES}?${query}`)).toEqual(success(200, [], link(`${CHANGES}?${kept}`)));
  });

  test('has no limit=0, and no exclude_actor or wait that the request does not have', async () => {
    const next = await endOfFeed(call);

    expect(next).toBe(`${CHANGES}?cursor=${cursorIn(next)}`);
  });

  test('of one user has the path in lower case, and keeps the limit', async () => {
    const ada = await createUser();
    const page = await call('GET', `${of({ id: ada.id.toUpperCase() })}?limit=5`);

    const next = nextOf(page);
    expect(next).toBe(`${of(ada)}?cursor=${cursorIn(next)}&limit=5`);
    expect(await call('GET', `${next}`)).toEqual(success(200, [], link(next)));
  });
});

test.each(['', '?wait=20', '?cursor=now&wait=20'])(
  'HEAD%s has the headers of GET, and never waits',
  async (query) => {
    await createUser();
    const begun = performance.now();
    const head = await call('HEAD', `${CHANGES}${query}`);
    const get = await call('GET', `${CHANGES}${query.replace('wait=20', 'wait=0')}`);

    expect(performance.now() - begun).toBeLessThan(10_000);
    const length = String(Buffer.byteLength(JSON.stringify(get.body)));
    const next = nextOf(get).replace(/$/, query.includes('wait') ? '&wait=20' : '');
    expect(head).toEqual(success(200, '', { ...link(next), 'content-length': length }));
  },
);

test('limit=0 never waits', async () => {
  const begun = performance.now();
  const page = await call('GET', `${CHANGES}?cursor=now&limit=0&wait=20`);

  expect(performance.now() - begun).toBeLessThan(10_000);
  expect(nextOf(page)).toContain('wait=20');
});

describe('the two paths', () => {
  test.each(['', '/'])('are the same resources with %j at the end', async (slash) => {
    const ada = await createUser();

    expect((await call('GET', `${CHANGES}${slash}?limit=1`)).status).toBe(200);
    expect((await call('GET', `${of(ada)}${slash}`)).body).toHaveLength(1);
  });

  test('ignore If-Match and If-None-Match, and have no ETag', async () => {
    const headers = { 'if-match': '"1"', 'if-none-match': '*' };

    expect((await call('GET', `${CHANGES}?cursor=now`, undefined, { headers })).status).toBe(200);
  });
});

describe('a cursor', () => {
  test('belongs to its path: one of all changes, of another user or of the list is 422', async () => {
    const [ada, grace] = [await createUser(), await createUser()];
    const ofAll = cursorIn(await endOfFeed(call));
    const ofAda = cursorIn(nextOf(await call('GET', of(ada))));
    const ofList = cursorIn(nextOf(await call('GET', `${USERS}?limit=1`)));

    for (const cursor of [ofAll, ofAda, ofList, 'now', '', `${ofAda}=`])
      expect(await call('GET', `${of(grace)}?cursor=${cursor}`)).toEqual(invalid(of(grace), 'cursor'));
    const malformed = ['.016', '.-16', '9f86d081..016.', '9F86D081..16.', '..16.', '.9007199254740992'];
    const encoded = malformed.map((text) => Buffer.from(text).toString('base64url'));
    for (const cursor of [ofAda, ofList, 'NOW', '', `${ofAll}=`, ofAll.slice(0, -2), ...encoded])
      expect(await call('GET', `${CHANGES}?cursor=${cursor}`)).toEqual(invalid(CHANGES, 'cursor'));
  });

  test('of another user is named together with all other faults', async () => {
    const [ada, grace] = [await createUser(), await createUser()];
    const cursor = cursorIn(nextOf(await call('GET', of(ada))));

    expect(await call('GET', `${of(grace)}?cursor=${cursor}&limit=0`)).toEqual(
      invalid(of(grace), 'limit', 'cursor'),
    );
  });

  test('of another user is 422 before an unknown user is 404', async () => {
    const cursor = cursorIn(nextOf(await call('GET', of(await createUser()))));
    const unknown = of({ id: '0199f3c8-5b7a-7c3e-9d5f-2b8a1c4e6f70' });

    expect(await call('GET', `${unknown}?cursor=${cursor}`)).toEqual(invalid(unknown, 'cursor'));
  });
});

describe('422 names all faults of the query:', () => {
  test.each([
    ['cursor=x', ['cursor']],
    ['cursor=LjA&limit=0', ['limit']],
    ['cursor=x&limit=0', ['cursor', 'limit']],
    ['limit=1001&wait=21&exclude_actor=&cursor=', ['cursor', 'exclude_actor', 'wait', 'limit']],
    ['exclude_actor=%00&wait=-1', ['exclude_actor', 'wait']],
    ['exclude_actor=%FF', ['exclude_actor']],
    ['cursor=now&cursor=now&limit=1', ['cursor']],
  ])('%s', async (query, errors) => {
    expect(await call('GET', `${CHANGES}?${query}`)).toEqual(invalid(CHANGES, ...errors));
  });

  test('also the user id in the path', async () => {
    const path = '/api/v1/users/42/changes';

    expect(await call('GET', `${path}?cursor=x&limit=x`)).toEqual(
      invalid(path, 'user_id', 'cursor', 'limit'),
    );
  });
});

test('wait and exclude_actor are ignored for the changes of one user', async () => {
  const ada = await createUser();

  expect((await call('GET', `${of(ada)}?wait=x&exclude_actor=`)).status).toBe(200);
});

describe('Accept', () => {
  const TYPE = 'application/cloudevents-batch+json';

  test.each([
    [TYPE, true],
    [`${TYPE};q=0.001`, true],
    [`text/html, ${TYPE.toUpperCase()} ; charset=utf-8 ; q=1`, true],
    [`${TYPE};q=0`, false],
    [`${TYPE}; Q=0.000`, false],
    ['application/*', false],
    ['*/*', false],
    ['', false],
  ])('%j asks for a batch of CloudEvents: %s', async (accept, isBatch) => {
    const ada = await createUser();
    for (const path of [CHANGES, of(ada)]) {
      const { headers } = await call('GET', path, undefined, { headers: { accept } });
      expect(headers['content-type']).toBe(`${isBatch ? TYPE : 'application/json'}; charset=utf-8`);
    }
  });

  test('does not change a refusal', async () => {
    const headers = { accept: TYPE };

    expect(await call('GET', `${CHANGES}?limit=x`, undefined, { headers })).toEqual(
      invalid(CHANGES, 'limit'),
    );
  });
});
