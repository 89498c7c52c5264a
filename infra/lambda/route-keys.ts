import type { Route } from '../../lib/endpoint/route.ts';

/**
 * The route keys of an endpoint in an HTTP API. For API Gateway a path with a trailing slash is another path, and the
 * route of GET does not serve HEAD.
 */
export function routeKeys({ method, path }: Pick<Route, 'method' | 'path'>): readonly string[] {
  const bare = path.replace(/\/$/, '');
  const methods = method === 'GET' ? ['GET', 'HEAD'] : [method];
  return methods.flatMap((name) => [`${name} ${bare}`, `${name} ${bare}/`]);
}
