import { expect, test } from 'vitest';
import { endpoints } from '../../handlers/index.ts';

// What a function responds to a request for a sibling is in the table of test/parity.
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
