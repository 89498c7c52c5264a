import type { oas31 } from 'zod-openapi';
import type { Route } from '../http/route.ts';

/**
 * Links from the response of a create to the operations on the created resource. These are the routes below its path
 * whose first parameter is the id.
 */
export function describeLinks({ path, success }: Route, routes: readonly Route[]): oas31.LinksObject {
  if (success !== 201) return {};
  const following = routes.filter((route) => route.path.startsWith(`${path}{`));
  return Object.fromEntries(
    following.map((route) => {
      const [, parameter = ''] = /\{(\w+)\}/.exec(route.path) ?? [];
      const { operationId, summary: description } = route;
      return [operationId, { operationId, parameters: { [parameter]: '$response.body#/id' }, description }];
    }),
  );
}
