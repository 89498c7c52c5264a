import { BlockList, isIPv6 } from 'node:net';
import type { Settings } from '../settings/settings.ts';
import { createEventLog, type EventLog } from './event-log.ts';
import type { WriteLine } from './line-writer.ts';

/** Starts the event log and, if telemetry is on, the SDK. Otherwise nothing of the SDK is loaded. */
export async function startReporting(settings: Settings, write: WriteLine) {
  const sdk = settings.otel.enabled ? await import('./telemetry.ts') : undefined;
  const telemetry = sdk?.startTelemetry(settings, write);
  const log = createEventLog(settings, write, telemetry?.activeSpan);
  warnAboutSettings(settings, log);
  return { log, telemetry };
}

/** Loopback addresses; the list finds IPv4-mapped ones by itself. */
const LOOPBACK = new BlockList();
LOOPBACK.addSubnet('127.0.0.0', 8);
LOOPBACK.addAddress('::1', 'ipv6');

/** Logs settings that are valid but probably not intended, once at the start of an instance. */
export function warnAboutSettings({ unknown, environment, otel, postgres }: Settings, log: EventLog): void {
  for (const name of unknown) log.warning('unknown_setting', { name });
  if (environment !== 'production') return;
  if (otel.enabled && otel.printsSpans) log.warning('spans_printed');
  if (postgres.isSslModeSet) return;
  const hosts = postgres.servers.map(({ host }) => host).filter((host) => !isLocal(host));
  if (hosts.length > 0) log.warning('postgres_tls_off', { hosts });
}

/** Whether the traffic to a host stays on this machine: `localhost`, a loopback address or the path of a Unix socket. */
function isLocal(host: string): boolean {
  const [address = ''] = host.split('%', 1);
  const isLoopback = LOOPBACK.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
  return isLoopback || host.startsWith('/') || host.toLowerCase() === 'localhost';
}
