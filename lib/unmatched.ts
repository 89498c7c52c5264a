import type { Route } from './endpoint.ts';
import type { GatewayEvent, GatewayResult, Handler } from './gateway.ts';
import { acceptPatch } from './middleware/media-type.ts';
import { isMatch, segmentsOf, withoutSlash } from './path.ts';
import { Problem } from './problem.ts';
import { serve } from './serve.ts';
import type { BaseService } from './service.ts';

/**
 * Answers what no endpoint answers: 400 for a path that cannot be decoded, 404 for an unknown one; on a known
 * one OPTIONS with 204 and any other method with 405, both with `Allow` (RFC 9110 sections 9.3.7 and 15.5.6).
 */
export function unmatched(routes: readonly Route[]) {
  const resources = resourcesOf(routes);

  async function answer({ rawPath, requestContext }: GatewayEvent): Promise<GatewayResult> {
    const segments = segmentsOf(rawPath);
    const resource = resources.find((candidate) => isMatch(candidate.segments, segments));
    if (!resource) throw noSuchPath();
    if (requestContext.http.method !== 'OPTIONS') throw methodNotAllowed(resource.allow);
    const headers = { Allow: resource.allow, ...resource.acceptPatch };
    return { statusCode: 204, headers, body: '', isBase64Encoded: false };
  }

  return {
    route: { operationId: 'unmatched' },
    bind: (service: BaseService): Handler => serve(service, { answer }),
  };
}

/** No operation has this path. */
export function noSuchPath(): Problem {
  return new Problem('not_found_error', { detail: 'There is no such path.' });
}

/** A known path that does not know the method; `allow` lists those it knows (RFC 9110 section 15.5.6). */
export function methodNotAllowed(allow: string): Problem {
  return new Problem('method_not_allowed_error', {
    detail: `The methods of this resource are ${allow}.`,
    headers: { Allow: allow },
  });
}

type Resource = {
  readonly segments: readonly string[];
  readonly allow: string;
  readonly acceptPatch: Readonly<Record<string, string>>;
};

function resourcesOf(routes: readonly Route[]): readonly Resource[] {
  const byPath = Map.groupBy(routes, ({ path }) => withoutSlash(path));
  return [...byPath].map(([path, group]) => {
    const methods = group.map(({ method }) => method);
    return { segments: path.split('/'), allow: allowOf(methods), acceptPatch: acceptPatch(methods) };
  });
}

function allowOf(declared: readonly string[]): string {
  const methods = declared.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...methods, 'OPTIONS'].join(', ');
}
