import type { GatewayEvent, Handler } from '../http/gateway.ts';
import { splitPath } from '../http/path.ts';
import type { Problem } from '../http/problem.ts';
import { formatAllow, methodNotAllowed } from '../http/refusals.ts';

/** The sibling routes of a path that ends in a parameter: the methods of each, by its last segment. */
export type SiblingRoutes = Readonly<Record<string, { readonly methods: readonly string[] }>>;

/**
 * The handler of a path that ends in a parameter, with 405 for its sibling routes. A gateway that matches method and
 * path together sends `GET …/users/batch` to the function that reads a user, because `batch` has only POST. In the
 * container the router prevents this.
 */
export function withSiblingRoutes(
  siblings: SiblingRoutes,
  own: Handler,
  createRefusing: (problem: Problem) => Handler,
): Handler {
  const refusing = new Map(
    Object.entries(siblings).map(([name, { methods }]) => [
      name,
      createRefusing(methodNotAllowed(formatAllow(methods))),
    ]),
  );
  return (event, invocation) => (refusing.get(findLastSegment(event)) ?? own)(event, invocation);
}

/** Empty for a path that cannot be decoded. The handler refuses such a path. */
function findLastSegment({ pathParameters, rawPath }: GatewayEvent): string {
  try {
    return (pathParameters ? Object.values(pathParameters) : splitPath(rawPath)).at(-1) ?? '';
  } catch {
    return '';
  }
}
