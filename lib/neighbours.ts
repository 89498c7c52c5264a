import { allowOf, methodNotAllowed } from './allow.ts';
import type { Handler } from './gateway.ts';
import { pathParametersIn } from './path.ts';
import type { Problem } from './problem.ts';

/** The methods of each path beside one that ends in a parameter, by what it has in the place of that. */
export type Neighbours = Readonly<Record<string, { readonly methods: readonly string[] }>>;

type Parameters = Readonly<Record<string, string | undefined>>;

/**
 * The handler of a path that ends in a parameter: a gateway that looks for method and path together takes
 * `GET …/users/batch` for the reading of a user, though that path has POST alone. The container's router knows better.
 */
export function besideNeighbours(
  path: string,
  neighbours: Neighbours,
  own: Handler,
  refuse: (problem: Problem) => Handler,
): Handler {
  const refusing = new Map(
    Object.entries(neighbours).map(([name, { methods }]) => [
      name,
      refuse(methodNotAllowed(allowOf(methods))),
    ]),
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
