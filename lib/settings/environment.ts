export type Variables = Readonly<Record<string, string | undefined>>;

/** The variables that are set, without white space at the ends of a value. A password is taken as it is. */
export function listSet(environment: Variables): Variables {
  const trimmed = Object.entries(environment).map(([name, value = '']) => [
    name,
    name === 'SVC_POSTGRES_PASSWORD' ? value : value.trim(),
  ]);
  return Object.fromEntries(trimmed.filter(([, value]) => value !== ''));
}

/**
 * Runs `make` in an environment without the variables whose names match. It is for libraries that read the environment by
 * themselves, without regard to the settings.
 */
export function withoutVariables<Made>(named: RegExp, make: () => Made): Made {
  const { env } = process;
  const given = Object.entries(listSet(env)).filter(([name]) => !named.test(name));
  process.env = Object.fromEntries(given);
  try {
    return make();
  } finally {
    process.env = env;
  }
}

/** Removes variables from the environment. It is for a library that reads them whenever it is loaded. */
export function forgetVariables(names: readonly string[]): void {
  for (const name of names) delete process.env[name];
}
