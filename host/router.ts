import findMyWay from 'find-my-way';
import type { Endpoint } from '../lib/endpoint.ts';
import type { Handler } from '../lib/gateway.ts';
import type { Service } from '../lib/service.ts';
import { unmatched } from '../lib/unmatched.ts';

/** What answers a request: the handler, and the parameters of its path. */
export type Match = {
  readonly handler: Handler;
  readonly params: Readonly<Record<string, string | undefined>>;
  /** Probes are not counted as requests in flight. */
  readonly isProbe: boolean;
};

/** Finds what answers; there always is something. */
export type Router = (method: string, path: string) => Match;

/** Longer than any target that Node's parser lets through. */
const LONGEST_PARAMETER = 65_536;

/** A router over all endpoints, each bound to the service. */
export function createRouter(endpoints: readonly Endpoint[], service: Service): Router {
  const router = findMyWay({ ignoreTrailingSlash: true, maxParamLength: LONGEST_PARAMETER });
  for (const { route, bind } of endpoints) {
    const path = route.path.replace(/\{(\w+)\}/g, ':$1');
    const store = { handler: bind(service), isProbe: route.kind === 'probe' };
    router.on(route.method === 'GET' ? ['GET', 'HEAD'] : [route.method], path, () => {}, store);
  }
  const noMatch = {
    handler: unmatched(endpoints.map(({ route }) => route)).bind(service),
    params: {},
    isProbe: false,
  };

  return (method, path) => {
    const found = router.find(method as 'GET', path);
    // An empty segment is no parameter: `/api/v1/users//` is an unknown path.
    const isWhole = found !== null && Object.values(found.params).every((value) => value !== '');
    return isWhole ? { ...(found.store as Omit<Match, 'params'>), params: found.params } : noMatch;
  };
}
