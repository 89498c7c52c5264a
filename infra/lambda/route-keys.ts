import type { Route } from '../../lib/endpoint.ts';

/**
 * The route keys of an endpoint in an HTTP API. To API Gateway a path with a slash at its end is another one, and
 * HEAD is not answered by what answers GET.
 */
export function routeKeys({ method, path }: Pick<Route, 'method' | 'path'>): readonly string[] {
  const bare = path.replace(/\/$/, '');
  const methods = method === 'GET' ? ['GET', 'HEAD'] : [method];
  return methods.flatMap((name) => [`${name} ${bare}`, `${name} ${bare}/`]);
}
