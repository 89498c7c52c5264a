import { allowOf, methodNotAllowed } from './allow.ts';
import type { Handler } from './gateway.ts';
import { pathParametersIn } from './path.ts';
import type { Problem } from './problem.ts';

/** Paths beside one that ends in a parameter: what they have in its place, and their methods. */
export type Neighbours = Readonly<Record<string, readonly string[]>>;

/**
 * The handler of a path that ends in a parameter, for a function: a gateway that looks for method and path together
 * takes `GET …/users/batch` for the reading of a user, though that path has POST alone. The container's router knows
 * better, and has found the parameters already.
 */
export function besideNeighbours(
  path: string,
  neighbours: Neighbours,
  own: Handler,
  refuse: (problem: Problem) => Handler,
): Handler {
  const refusing = new Map(
    Object.entries(neighbours).map(([name, methods]) => [name, refuse(methodNotAllowed(allowOf(methods)))]),
  );
  return (event, invocation) => {
    const handler = event.pathParameters ? undefined : refusing.get(lastParameterIn(path, event.rawPath));
    return (handler ?? own)(event, invocation);
  };
}

/** Of a path that cannot be decoded nothing: that is for the handler to refuse. */
function lastParameterIn(declared: string, path: string): string {
  try {
    return Object.values(pathParametersIn(declared, path)).at(-1) ?? '';
  } catch {
    return '';
  }
}
