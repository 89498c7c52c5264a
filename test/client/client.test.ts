import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  type ClientCredentials,
  clientCredentials,
  createUsers,
  isProblem,
  type Mirror,
  mirror,
  type TokenSource,
  type User,
  type UsersOptions,
} from '../../infra/client/src/index.ts';
import type { Breaking } from '../accept/faults.ts';
import type { RawResponse } from '../stage/raw-request.ts';
import { acceptableUnderTest } from './acceptable-under-test.ts';
import { byId, copyInMemory } from './copy-in-memory.ts';

const stage = acceptableUnderTest();
const { startBreaking } = stage;

let addresses = 0;
const fresh = () => `client-${++addresses}@example.com`;

const tokens = (): TokenSource =>
  clientCredentials({
    url: stage.service.credentials.ACCEPT_TOKEN_URL,
    clientId: 'client',
    clientSecret: 'a b&ü',
  });

const usersAt = (url = stage.service.url, options: Partial<UsersOptions> = {}) =>
  createUsers({ url, token: tokens(), retry: { pause: 5 }, ...options });

/** The first response to such a request is lost, although the request arrives. Later responses arrive. */
const losing = (method: string): Breaking => {
  let isFirst = true;
  return {
    onResponse: (answer, request) => {
      if (request.method !== method || !isFirst) return answer;
      isFirst = false;
      return 'reset';
    },
  };
};

/** The first responses are these. */
const answering = (...first: readonly Partial<RawResponse>[]): Breaking => {
  const left = [...first];
  return { onResponse: (answer) => ({ ...answer, headers: {}, body: '', ...(left.shift() ?? answer) }) };
};

/** Tokens of an authorization server that responds like this. */
const tokensFrom = (respond: typeof fetch, more: Partial<ClientCredentials> = {}) =>
  clientCredentials({ url: 'https://identity.example.com/token', clientId: 'c', fetch: respond, ...more });

describe('tokens', () => {
  test('are fetched once for many concurrent calls, with the credentials by HTTP Basic', async () => {
    const asked: Request[] = [];
    const url = stage.service.credentials.ACCEPT_TOKEN_URL;
    const send: typeof fetch = (input, init) => {
      asked.push(new Request(input, init));
      return fetch(input, init);
    };
    const given = { url, clientId: 'a client', clientSecret: 's:ecret', scope: 'users.read' };
    const token = tokensFrom(send, given);
    const users = usersAt(undefined, { token });
    await Promise.all(Array.from({ length: 5 }, () => users.findByEmail('ada@example.com')));

    expect(asked).toHaveLength(1);
    expect(atob(asked[0]?.headers.get('authorization')?.slice('Basic '.length) ?? '')).toBe(
      'a+client:s%3Aecret',
    );
    expect(await asked[0]?.text()).toBe('grant_type=client_credentials&scope=users.read');
  });

  test('are requested with credentials in the body if the provider requires that, with its further parameters, and no redirect is followed', async () => {
    let sent: RequestInit | undefined;
    const respond: typeof fetch = async (_, init) => {
      sent = init;
      return Response.json({ access_token: 't', expires_in: 60 });
    };
    const given = { clientSecret: 's', authenticateBy: 'body', parameters: { audience: 'users' } } as const;
    const token = tokensFrom(respond, given);

    expect(await token()).toBe('t');
    expect(sent).toMatchObject({
      body: 'grant_type=client_credentials&client_id=c&client_secret=s&audience=users',
      redirect: 'manual',
    });
  });

  test('that are refused or about to expire are renewed, and a refused request is sent again', async () => {
    let count = 0;
    const good = tokens();
    const token = tokensFrom(async () => {
      count += 1;
      const access_token = count < 3 ? `bad-${count}` : await good();
      return Response.json({ access_token, expires_in: count < 2 ? 0 : 60 });
    });
    // The first expires at once, and the second is invalid.
    await token();
    const users = usersAt(undefined, { token });

    expect((await users.findByEmail('ada@example.com'))?.full_name).toBe('ADA');
    expect(count).toBe(3);
  });

  test('that cannot be replaced lead to the refusal of the service', async () => {
    const front = await startBreaking({});
    const users = usersAt(front.url, { token: () => 'no-token' });

    await expect(users.findByEmail('ada@example.com')).rejects.toMatchObject({ problem: { status: 401 } });
    expect(front.seen).toHaveLength(1);
  });

  test.each([
    [60, 54],
    [3600, 3570],
    [undefined, 270],
  ])('with expires_in %s are renewed after %i seconds', async (expires_in, seconds) => {
    vi.useFakeTimers({ toFake: ['Date'] });
    onTestFinished(() => void vi.useRealTimers());
    let count = 0;
    const token = tokensFrom(async () => Response.json({ access_token: `${++count}`, expires_in }));
    await token();
    vi.advanceTimersByTime(seconds * 1000 - 1);
    const kept = await token();
    vi.advanceTimersByTime(1);

    expect([kept, await token()]).toEqual(['1', '2']);
  });
});

describe('a lost response', () => {
  test('to a create leaves one user, and the create returns it', async () => {
    const front = await startBreaking(losing('POST'));
    const email = fresh();
    const { id } = await usersAt(front.url).create({ email });

    expect(front.seen.map(({ method }) => method)).toEqual(['POST', 'POST']);
    expect((await usersAt().findByEmail(email))?.id).toBe(id);
  });

  test('to a deletion leaves the user deleted, and a second deletion is refused', async () => {
    const { id } = await usersAt().create({ email: fresh() });
    const front = await startBreaking(losing('DELETE'));
    await usersAt(front.url).remove(id);

    await expect(usersAt(front.url).remove(id)).rejects.toMatchObject({ problem: { status: 404 } });
  });

  test('to an update with all members of a user leaves it carried out once', async () => {
    const user = await usersAt().create({ email: fresh(), external_id: crypto.randomUUID() });
    const front = await startBreaking(losing('PATCH'));
    const change = { ...user, email: null, is_active: null, full_name: 'Once', external_id: null };
    const changed = await usersAt(front.url).change(user.id, change, { ifVersion: user.version });

    expect(changed).toMatchObject({ email: user.email, is_active: true, full_name: 'Once', version: '"2"' });
    expect(changed.external_id).toBe(undefined);
  });

  test('to an update of a version is the refusal if the user does not have every value', async () => {
    const { id, version } = await usersAt().create({ email: fresh() });
    const front = await startBreaking(losing('PATCH'));
    const change = { full_name: 'Once', later_field: 'value' };
    const refused = usersAt(front.url).change(id, change, { ifVersion: version });
    await expect(refused).rejects.toMatchObject({ problem: { status: 412 } });
  });

  test('to a create without a key is an error, and the create is not sent again', async () => {
    const front = await startBreaking(losing('POST'));
    const sent = usersAt(front.url).api.POST('/api/v1/users/', { body: { email: fresh() } });

    await expect(sent).rejects.toThrow();
    expect(front.seen).toHaveLength(1);
  });
});

describe('an unavailable service', () => {
  test('receives the request again after the time of Retry-After', async () => {
    const front = await startBreaking(
      answering({ status: 503, headers: { 'retry-after': '1' } }, { status: 502 }),
    );
    const begun = performance.now();
    const user = await usersAt(front.url).findByEmail('ada@example.com');

    expect(user?.full_name).toBe('ADA');
    expect(front.seen).toHaveLength(3);
    expect(performance.now() - begun).toBeGreaterThanOrEqual(990);
  });

  test.each<[string, Partial<RawResponse>, number]>([
    ['429', { status: 429 }, 2],
    ['504', { status: 504 }, 2],
    ['503, later than the longest pause', { status: 503, headers: { 'retry-after': '3600' } }, 2],
    ['409, later', { status: 409, headers: { 'retry-after': '0' } }, 2],
    ['409', { status: 409 }, 1],
    ['500', { status: 500 }, 1],
  ])('that responds %s: %j receives the request so many times: %i', async (_, response, count) => {
    const front = await startBreaking(answering(response));
    const users = usersAt(front.url, { retry: { pause: 1, longestPause: 100 } });
    await users.findByEmail('ada@example.com').catch(() => undefined);

    expect(front.seen).toHaveLength(count);
  });

  test('receives the maximum of attempts, and then its response is reported', async () => {
    const front = await startBreaking(answering(...Array(3).fill({ status: 502, body: 'Bad Gateway' })));
    const users = usersAt(front.url, { retry: { attempts: 3, pause: 1 } });

    await expect(users.head()).rejects.toThrow(
      '502: not a status of this operation (no content type): Bad Gateway',
    );
    expect(front.seen).toHaveLength(3);
  });

  test('receives the request again if the body of its response is incomplete', async () => {
    let count = 0;
    const cutOff = new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode('[{"email"')),
      pull: (controller) => controller.error(new TypeError('terminated')),
    });
    const users = usersAt(undefined, {
      fetch: async (input, init) => {
        count += 1;
        return count > 1 ? fetch(input, init) : new Response(cutOff);
      },
    });

    expect((await users.findByEmail('ada@example.com'))?.full_name).toBe('ADA');
    expect(count).toBe(2);
  });

  test('receives no request while the authorization server refuses, and the refusal is returned at once without the secret', async () => {
    let count = 0;
    const refuse = async () => {
      count += 1;
      return Response.json({ error: 'hunter2 is wrong' }, { status: 401 });
    };
    const users = usersAt(undefined, { token: tokensFrom(refuse, { clientSecret: 'hunter2' }) });

    await expect(users.head()).rejects.toMatchObject({
      message: '401: no token from https://identity.example.com/token: … is wrong',
    });
    expect(count).toBe(1);
  });

  test('that never responds receives the request again after the time limit, until the call is aborted', async () => {
    const leaving = new AbortController();
    const front = await startBreaking({
      onRequest: (request) => {
        if (front.seen.length === 3) leaving.abort(new Error('left'));
        return request;
      },
      onResponse: () => new Promise(() => {}),
    });
    const users = usersAt(front.url, { retry: { attempts: 50, pause: 1, timeout: 200 } });

    await expect(users.head({ signal: leaving.signal })).rejects.toThrow('left');
    expect(front.seen).toHaveLength(3);
  });
});

test('concurrent updates all take effect', async () => {
  const users = usersAt();
  const { id } = await users.create({ email: fresh(), full_name: '' });
  const letters = [...'abcdefgh'];
  await Promise.all(
    letters.map((letter) =>
      users.update(id, ({ full_name }) => ({ full_name: full_name + letter }), { attempts: 50 }),
    ),
  );

  expect([...((await users.get(id)).full_name ?? '')].sort()).toEqual(letters);
});

test('an update of an old version is refused, and update fails after its last attempt', async () => {
  const users = usersAt();
  const { id, version } = await users.create({ email: fresh() });
  await users.change(id, {});
  const late = await users.change(id, {}, { ifVersion: version }).catch((reason) => reason);
  const overtaken = async () => {
    await users.change(id, {});
    return {};
  };
  const lost = await users.update(id, overtaken, { attempts: 3 }).catch((reason) => reason);

  expect([late, lost].map((error) => isProblem(error, 'precondition_failed_error'))).toEqual([true, true]);
  expect((await users.get(id)).version).toBe('"5"');
});

const all = async () => byId(await Array.fromAsync(usersAt().list({ limit: 1000 })));

describe('a mirror', () => {
  test('equals the table after writes during the copy and after it', async () => {
    const users = usersAt();
    const { copy, rows } = copyInMemory();
    const write = async () => {
      const [changed, removed] = await users.createAll([{ email: fresh() }, { email: fresh() }]);
      await users.change(String(changed?.id), { full_name: 'changed' });
      await users.remove(String(removed?.id));
    };
    let isFirst = true;
    const watched: Mirror = {
      ...copy,
      async put(user) {
        void copy.put(user);
        // The list has been read.
        if (isFirst) await write();
        isFirst = false;
      },
    };
    await mirror(users, watched, { follow: false });
    await write();
    await mirror(users, copy, { follow: false });

    expect(byId(rows.values())).toEqual(await all());
  });

  test('starts again when the changes after its cursor have expired', async () => {
    const users = usersAt();
    const gone: User = {
      ...(await users.create({ email: fresh() })),
      id: '00000000-0000-0000-0000-000000000000',
    };
    // After the head, as after a restored backup.
    const { copy, rows } = copyInMemory({ cursor: btoa('.999999').replace(/=+$/, ''), users: [gone] });
    await mirror(users, copy, { follow: false });

    expect(byId(rows.values())).toEqual(await all());
  });
});
