import { FUNCTION_DEFAULTS } from '../../lib/lambda.ts';
import { SETTINGS } from '../../lib/settings/setting-table.ts';
import { readSettings } from '../../lib/settings/settings.ts';
import type { Deployment } from './deployment.ts';

/** Settings whose values are those of the stack's own resources, or which AWS Lambda sets. */
const OF_STACK = /^(SVC_POSTGRES_(HOST|PORT|USER|PASSWORD|PASSWORD_FROM|DB)|AWS_SESSION_TOKEN)$/;

/** Settings that no function reads, only the container host. */
const OF_HOST = /^(SVC_(HOST|PORT|SHUTDOWN_\w+|KEEP_ALIVE_TIMEOUT|POSTGRES_MIGRATE)|OTEL\w*_METRICS_\w+)$/;

/** Variables that libraries and Node.js read: `infra/docs/settings.md`, Other variables. */
const OF_LIBRARIES = /^(OTEL|AWS_XRAY|NODE)_/;

/** Whether a deployment file may have this setting. */
export function isForFunctions(name: string): boolean {
  return (name in SETTINGS || OF_LIBRARIES.test(name)) && !OF_STACK.test(name) && !OF_HOST.test(name);
}

type FunctionSettings = {
  readonly variables: Readonly<Record<string, string>>;
  /** Whether functions trace with AWS X-Ray. */
  readonly hasXRay: boolean;
};

/**
 * The settings of the functions: those of the deployment file, and values that differ from the defaults of the service.
 *
 * @throws an error that names every setting that is missing, not valid, or not for functions
 */
export function settingsOf({ settings }: Deployment): FunctionSettings {
  const refused = Object.keys(settings).filter((name) => !isForFunctions(name));
  if (refused.length > 0)
    throw new Error(`These settings must not be in a deployment file: ${refused.join()}`);
  const hasReceiver = Object.keys(settings).some((name) =>
    /^OTEL_EXPORTER_OTLP_(TRACES_)?ENDPOINT$/.test(name),
  );
  const chosen = {
    SVC_ENV: 'production',
    SVC_POSTGRES_SSLMODE: 'verify-full',
    // Without a receiver, spans would be written to the log.
    ...(hasReceiver
      ? { SVC_OTEL_ENABLED: 'true' }
      : { SVC_OTEL_ENABLED: 'false', POWERTOOLS_TRACE_ENABLED: 'true' }),
    ...settings,
  };
  const { xray, otel } = readSettings(chosen, FUNCTION_DEFAULTS);
  return { variables: chosen, hasXRay: xray && !otel.enabled };
}
