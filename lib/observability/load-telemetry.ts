import type { WriteLine } from './line-writer.ts';
import type { Telemetry, TelemetrySettings } from './telemetry.ts';

/** Loads and starts the SDK if telemetry is on. Otherwise nothing of it is loaded. */
export async function loadTelemetry(
  settings: TelemetrySettings,
  write: WriteLine,
): Promise<Telemetry | undefined> {
  if (!settings.otel.enabled) return undefined;
  const { startTelemetry } = await import('./telemetry.ts');
  return startTelemetry(settings, write);
}
