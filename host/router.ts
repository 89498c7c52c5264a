import findMyWay, { type HTTPMethod } from 'find-my-way';
import type { Endpoint } from '../lib/http/endpoint.ts';
import type { Handler } from '../lib/http/gateway.ts';
import type { Route } from '../lib/http/route.ts';
import { unmatched } from '../lib/http/unmatched.ts';
import type { Service } from '../lib/service.ts';

/** The handler for a request, and the parameters of its path. */
export type Match = {
  readonly handler: Handler;
  readonly params: Readonly<Record<string, string | undefined>>;
  /** Undefined if no endpoint serves the request. */
  readonly route?: Route;
};

/** Finds the handler. There always is one. */
export type Router = (method: string, path: string) => Match;

/** Longer than any target that Node's parser accepts. */
const MAX_PARAMETER_LENGTH = 65_536;

/**
 * Creates a router over all endpoints, each bound to the service. A path that lacks a method refuses this method.
 * Otherwise `GET /users/batch` would be taken for `GET /users/{user_id}`.
 */
export function createRouter(endpoints: readonly Endpoint[], service: Service): Router {
  const router = findMyWay({ ignoreTrailingSlash: true, maxParamLength: MAX_PARAMETER_LENGTH });
  const noMatch: Match = {
    handler: unmatched(endpoints.map(({ route }) => route)).bind(service),
    params: {},
  };
  const known = new Set(endpoints.flatMap(({ route }) => methodsOf(route)));
  for (const [path, group] of Map.groupBy(endpoints, ({ route }) => route.path)) {
    const lacking = new Set(known);
    for (const { route, bind } of group) {
      const store = { handler: bind(service), route };
      for (const method of methodsOf(route)) lacking.delete(method);
      router.on(methodsOf(route), patternOf(path), () => {}, store);
    }
    router.on([...lacking], patternOf(path), () => {}, noMatch);
  }

  return (method, path) => {
    const found = router.find(method as 'GET', path);
    if (!found || hasEmptySegment(found.params)) return noMatch;
    return { ...(found.store as Omit<Match, 'params'>), params: found.params };
  };
}

/** An empty segment is not a parameter: `/api/v1/users//` is an unknown path. */
function hasEmptySegment(params: Match['params']): boolean {
  for (const name in params) if (params[name] === '') return true;
  return false;
}

function methodsOf({ method }: Route): HTTPMethod[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method];
}

function patternOf(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}
