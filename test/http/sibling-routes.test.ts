import { beforeAll, describe, expect, test } from 'vitest';
import { endpoints } from '../../handlers/index.ts';
import { deleteUser } from '../../handlers/users/delete.ts';
import { getUser } from '../../handlers/users/get.ts';
import { updateUser } from '../../handlers/users/update.ts';
import { startComposition } from '../stage/composition.ts';
import { eventOf } from '../stage/events.ts';
import { BATCH, refusal, responseFromResult, type ServiceResponse } from '../stage/responses.ts';

let stage: Awaited<ReturnType<typeof startComposition>>;

beforeAll(async () => {
  stage = await startComposition();
  return () => stage.stop();
});

/** The response of a function to the event of this name, with another path. */
async function callAt(rawPath: string, name: string, endpoint: typeof getUser): Promise<ServiceResponse> {
  const event = await eventOf(name, { token: 'none' });
  return responseFromResult(
    await endpoint.bind(stage.service)({ ...event, rawPath, pathParameters: undefined }),
  );
}

describe('a function of a user that a gateway calls for a path beside it responds 405 before the token:', () => {
  test.each([
    ['getUser', getUser, BATCH],
    ['getUser-head', getUser, BATCH],
    ['getUser', getUser, `${BATCH}/`],
    ['getUser', getUser, '/mapped/api/v1/users/b%61tch'],
    ['updateUser', updateUser, BATCH],
    ['deleteUser', deleteUser, BATCH],
  ])('%s', async (name, endpoint, path) => {
    const { status, headers, body } = refusal('method_not_allowed_error', path, {
      headers: { allow: 'POST, OPTIONS' },
    });
    const isHead = name === 'getUser-head';
    const length = { 'content-length': expect.stringMatching(/^\d+$/) };

    expect(await callAt(path, name, endpoint)).toEqual({
      status,
      headers: isHead ? { ...headers, ...length } : headers,
      body: isHead ? '' : body,
    });
  });

  test('the changes, with their own methods', async () => {
    expect(await callAt('/api/v1/users/changes', 'getUser', getUser)).toEqual(
      refusal('method_not_allowed_error', '/api/v1/users/changes', {
        headers: { allow: 'GET, HEAD, OPTIONS' },
      }),
    );
  });

  test('but not for any other path', async () => {
    for (const path of [`${BATCH}x`, '/api/v1/users/BATCH', '/api/v1/users/constructor']) {
      expect((await callAt(path, 'getUser', getUser)).status).toBe(401);
    }
    expect((await callAt('/api/v1/users/%zz', 'getUser', getUser)).status).toBe(400);
  });
});

test('a path that ends in a parameter has all its sibling routes with their methods', () => {
  const routes = endpoints.map(({ route }) => route);
  const beside = (path: string) => {
    const [, parent = ''] = /^(.*\/)\{\w+\}$/.exec(path) ?? [];
    const isSibling = (other: string) =>
      other.startsWith(parent) && /^[^/{}]+$/.test(other.slice(parent.length));
    const group = routes.filter((other) => parent !== '' && isSibling(other.path));
    return Object.fromEntries(
      [...Map.groupBy(group, (other) => other.path.slice(parent.length))].map(([name, members]) => [
        name,
        expect.objectContaining({ methods: members.map(({ method }) => method) }),
      ]),
    );
  };

  expect(routes.map(({ operationId, siblings = {} }) => [operationId, siblings])).toEqual(
    routes.map(({ operationId, path }) => [operationId, beside(path)]),
  );
});
