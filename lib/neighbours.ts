import { allowOf, methodNotAllowed } from './allow.ts';
import type { Handler } from './gateway.ts';
import { noSuchPath } from './http-refusals.ts';
import { pathParametersIn } from './path.ts';
import type { Problem } from './problem.ts';
import type { Settings } from './settings.ts';

/** A path beside one that ends in a parameter: its methods, and whether it is there at all. */
type Neighbour = {
  readonly methods: readonly string[];
  readonly isServed?: (settings: Settings) => boolean;
};

/** The paths beside one that ends in a parameter, by what they have in its place. */
export type Neighbours = Readonly<Record<string, Neighbour>>;

/**
 * The handler of a path that ends in a parameter, for a function: a gateway that looks for method and path together
 * takes `GET …/users/batch` for the reading of a user, though that path has POST alone. The container's router knows
 * better, and has found the parameters already.
 */
export function besideNeighbours(
  path: string,
  neighbours: Neighbours,
  settings: Settings,
  own: Handler,
  refuse: (problem: Problem) => Handler,
): Handler {
  const refusing = new Map(
    Object.entries(neighbours).map(([name, { methods, isServed }]) => {
      const isThere = isServed?.(settings) ?? true;
      return [name, refuse(isThere ? methodNotAllowed(allowOf(methods)) : noSuchPath())];
    }),
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
