import findMyWay from 'find-my-way';
import type { Endpoint } from '../lib/endpoint/endpoint.ts';
import type { Route } from '../lib/endpoint/route.ts';
import { unmatched } from '../lib/endpoint/unmatched.ts';
import type { Handler } from '../lib/http/gateway.ts';
import type { Service } from '../lib/service.ts';

export type Match = {
  readonly handler: Handler;
  readonly params: Readonly<Record<string, string | undefined>>;
  /** Undefined if no endpoint serves the request. */
  readonly route?: Route;
};

type Methods = Map<string, Omit<Match, 'params'>>;

/** Longer than any target that Node's parser accepts. */
const MAX_PARAMETER_LENGTH = 65_536;

/**
 * The endpoints, each bound to the service. The path is found first, and then its method. Otherwise `GET /users/batch`
 * would be taken for `GET /users/{user_id}`.
 */
export class Router {
  /** The methods of each path. The router has all paths under one method. */
  readonly #paths = findMyWay({ ignoreTrailingSlash: true, maxParamLength: MAX_PARAMETER_LENGTH });
  readonly #noMatch: Match;

  constructor(endpoints: readonly Endpoint[], service: Service) {
    this.#noMatch = { handler: unmatched(endpoints.map(({ route }) => route)).bind(service), params: {} };
    for (const [path, group] of Map.groupBy(endpoints, ({ route }) => route.path)) {
      const methods: Methods = new Map();
      for (const { route, bind } of group) {
        const served = { handler: bind(service), route };
        methods.set(route.method, served);
        if (route.method === 'GET') methods.set('HEAD', served);
      }
      this.#paths.on('GET', path.replace(/\{(\w+)\}/g, ':$1'), () => {}, methods);
    }
  }

  find(method: string, path: string): Match {
    const found = this.#paths.find('GET', path);
    const served = (found?.store as Methods | undefined)?.get(method);
    // An empty segment is not a parameter: `/api/v1/users//` is an unknown path.
    if (!found || !served || Object.values(found.params).includes('')) return this.#noMatch;
    return { ...served, params: found.params };
  }
}
