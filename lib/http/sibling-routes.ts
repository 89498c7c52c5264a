import type { Handler } from './gateway.ts';
import { parsePathParameters } from './path.ts';
import type { Problem } from './problem.ts';
import { formatAllow, refuseMethod } from './refusals.ts';

/** The sibling routes of a path that ends in a parameter: the methods of each, by its last segment. */
export type SiblingRoutes = Readonly<Record<string, { readonly methods: readonly string[] }>>;

type Parameters = Readonly<Record<string, string | undefined>>;

/**
 * The handler of a path that ends in a parameter, with 405 for its sibling routes. A gateway that matches method and
 * path together sends `GET …/users/batch` to the function that reads a user, because `batch` has only POST. In the
 * container the router prevents this.
 */
export function withSiblingRoutes(
  path: string,
  siblings: SiblingRoutes,
  own: Handler,
  refuse: (problem: Problem) => Handler,
): Handler {
  const refusing = new Map(
    Object.entries(siblings).map(([name, { methods }]) => [name, refuse(refuseMethod(formatAllow(methods)))]),
  );
  return (event, invocation) => {
    const name = findLastValue(event.pathParameters ?? readParameters(path, event.rawPath));
    return (refusing.get(name) ?? own)(event, invocation);
  };
}

function findLastValue(parameters: Parameters): string {
  let last: string | undefined;
  for (const name in parameters) last = parameters[name];
  return last ?? '';
}

/** Empty for a path that cannot be decoded. The handler refuses such a path. */
function readParameters(declared: string, path: string): Parameters {
  try {
    return parsePathParameters(declared, path);
  } catch {
    return {};
  }
}
