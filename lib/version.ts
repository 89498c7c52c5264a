import packageJson from '../package.json' with { type: 'json' };

const { version, buildVersion = version }: { version: string; buildVersion?: string } = packageJson;

export const VERSION = version;

/** The same with the commit as build metadata (`1.2.0-dev+75c07d4`), in a build that knows it. */
export const BUILD_VERSION = buildVersion;
