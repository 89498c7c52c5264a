import type { GatewayEvent, GatewayResult, Handler } from '../http/gateway.ts';
import { isPathMatch, removeTrailingSlash, splitPath } from '../http/path.ts';
import { formatAllow, methodNotAllowed, unknownPath } from '../http/refusals.ts';
import type { BaseService } from '../service.ts';
import { formatAcceptPatch } from './media-type.ts';
import { createHandler } from './middleware-stack.ts';
import type { Route } from './route.ts';

/**
 * Responds to requests that no endpoint serves. A path that cannot be decoded is 400, and an unknown path is 404. On a
 * known path, OPTIONS is 204 and any other method is 405, both with `Allow` (RFC 9110 sections 9.3.7 and 15.5.6).
 */
export function unmatched(routes: readonly Route[]) {
  const resources = listResources(routes);

  async function respond({ rawPath, requestContext }: GatewayEvent): Promise<GatewayResult> {
    const segments = splitPath(rawPath);
    const resource = resources.find((candidate) => isPathMatch(candidate.segments, segments));
    if (!resource) throw unknownPath();
    if (requestContext.http.method !== 'OPTIONS') throw methodNotAllowed(resource.allow);
    const headers = { Allow: resource.allow, ...resource.acceptPatch };
    return { statusCode: 204, headers, body: '', isBase64Encoded: false };
  }

  return {
    route: { operationId: 'unmatched' },
    bind: (service: BaseService): Handler => createHandler(service, respond),
  };
}

/** Paths with fewer parameters come first, because `/users/batch` must not match `/users/{user_id}`. */
function listResources(routes: readonly Route[]) {
  const byPath = Map.groupBy(routes, ({ path }) => removeTrailingSlash(path));
  const paths = [...byPath].sort(([one], [other]) => countParameters(one) - countParameters(other));
  return paths.map(([path, group]) => {
    const methods = group.map(({ method }) => method);
    return {
      segments: path.split('/'),
      allow: formatAllow(methods),
      acceptPatch: formatAcceptPatch(methods),
    };
  });
}

function countParameters(path: string): number {
  return path.split('{').length - 1;
}
