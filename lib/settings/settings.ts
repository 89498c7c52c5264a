import * as z from 'zod';
import { listSet, type Variables } from './environment.ts';
import { listTexts, readOtelUse } from './otel-variables.ts';
import { DECLARED, SETTINGS, type SettingGroup, variableOf } from './setting-table.ts';

/** The settings of one instance. Times are in seconds, sizes in bytes. */
export type Settings = ReturnType<typeof readSettings>;

/** Settings that are missing or not valid. The message names each setting and what it accepts, but no value. */
export class SettingsError extends Error {
  override readonly name = 'SettingsError';
}

/**
 * Reads all settings together. White space at the ends of a value is removed, except of a password, and an empty value
 * counts as unset. `defaults` replace the defaults of the declaration: AWS Lambda has some of its own.
 *
 * @throws {SettingsError} names every setting that is missing or not valid
 */
export function readSettings(environment: Variables = process.env, defaults: Variables = {}) {
  const given: Variables = { ...defaults, ...listSet(environment) };
  const { isUsed, ...otel } = readOtelUse(given);
  const used = Object.fromEntries(Object.entries(given).filter(([name]) => isUsed(name)));
  const faults: string[] = [];
  const values = readValues(DECLARED, used, faults);
  const { hosts, ports, ...postgres } = values.postgres;
  if (hosts && ports && ports.length !== 1 && ports.length !== hosts.length) {
    faults.push('SVC_POSTGRES_PORT is not valid: it accepts one port for all hosts, or one for each');
  }
  if (faults.length > 0) throw new SettingsError(['The settings are not valid.', ...faults].join('\n  '));
  return {
    ...values,
    otel: {
      enabled: otel.isOn,
      printsSpans: otel.spans === 'console',
      metricsExporter: values.otel.metricsExporter,
      logLevel: values.otel.logLevel,
      /** Texts of its variables, which its diagnostics must not quote: they may be secrets, also in the wrong place. */
      texts: listTexts(given),
    },
    postgres: {
      ...postgres,
      /** All named servers. The service uses the one that accepts writes. */
      servers: serversOf(hosts, ports),
      /** False if `disable` is only the default. */
      isSslModeSet: given.SVC_POSTGRES_SSLMODE !== undefined,
    },
    /** `SVC_*` names that no setting has. They cause a warning, so that a typo is visible. */
    unknown: Object.keys(given).filter((name) => name.startsWith('SVC_') && !(name in SETTINGS)),
  };
}

type Values<Group> = {
  readonly [Name in keyof Group]: Group[Name] extends z.ZodType<infer Value> ? Value : Values<Group[Name]>;
};

/** A value that is missing or not valid is undefined, and adds a sentence to `faults`. */
function readValues<Group extends SettingGroup>(
  group: Group,
  given: Variables,
  faults: string[],
): Values<Group> {
  const values = Object.entries(group).map(([name, one]) => {
    if (!(one instanceof z.ZodType)) return [name, readValues(one, given, faults)];
    const variable = variableOf(one);
    const { data, error } = one.safeParse(given[variable]);
    const fault = given[variable] === undefined ? 'is required' : 'is not valid';
    if (error) faults.push(`${variable} ${fault}: it accepts ${error.issues[0]?.message}`);
    return [name, data];
  });
  return Object.fromEntries(values);
}

/** Pairs hosts with ports. A single port applies to all hosts. */
function serversOf(hosts: readonly string[], ports: readonly number[]) {
  const servers = hosts.map((host, n) => ({ host, port: ports[n] ?? (ports[0] as number) }));
  return servers as unknown as readonly [PostgresServer, ...PostgresServer[]];
}

/** A server of PostgreSQL, by its address. */
export type PostgresServer = { readonly host: string; readonly port: number };
