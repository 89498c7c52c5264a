import packageJson from '../package.json' with { type: 'json' };

type Description = { readonly version: string; readonly buildVersion?: string };

const { version, buildVersion = version }: Description = packageJson;

/** The version of the service and of its API. */
export const VERSION = version;

/** The same with the commit as build metadata (`1.1.0+75c07d4`), in a build that knows it. */
export const BUILD_VERSION = buildVersion;
