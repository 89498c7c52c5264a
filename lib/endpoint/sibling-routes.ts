import type { Handler } from '../http/gateway.ts';
import { splitPath } from '../http/path.ts';
import { formatAllow, methodNotAllowed } from '../http/refusals.ts';
import type { BaseService } from '../service.ts';
import { createRefusingHandler } from './middleware-stack.ts';
import type { Route } from './route.ts';

/**
 * The handler of a function, with 405 for the sibling routes of its path. A gateway that matches method and path together
 * sends `GET …/users/batch` to the function that reads a user, because `batch` has only POST. In the container the router
 * prevents this.
 */
export function withSiblingRoutes(
  own: Handler,
  service: BaseService,
  siblings: Route['siblings'] = {},
): Handler {
  const refusing = new Map(
    Object.entries(siblings).map(([name, { methods }]) => [
      name,
      createRefusingHandler(service, methodNotAllowed(formatAllow(methods))),
    ]),
  );
  return (event, invocation) => (refusing.get(findLastSegment(event.rawPath)) ?? own)(event, invocation);
}

/** Empty for a path that cannot be decoded. The handler refuses such a path. */
function findLastSegment(path: string): string {
  try {
    return splitPath(path).at(-1) ?? '';
  } catch {
    return '';
  }
}
