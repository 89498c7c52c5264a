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

type Parameters = Readonly<Record<string, string | undefined>>;

/**
 * The handler of a path that ends in a parameter: a gateway that looks for method and path together takes
 * `GET …/users/batch` for the reading of a user, though that path has POST alone. The container's router knows better.
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
    const name = lastOf(event.pathParameters ?? parametersIn(path, event.rawPath));
    return (refusing.get(name) ?? own)(event, invocation);
  };
}

function lastOf(parameters: Parameters): string {
  let last: string | undefined;
  for (const name in parameters) last = parameters[name];
  return last ?? '';
}

/** None of a path that cannot be decoded, which is for the handler to refuse. */
function parametersIn(declared: string, path: string): Parameters {
  try {
    return pathParametersIn(declared, path);
  } catch {
    return {};
  }
}
