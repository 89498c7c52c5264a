import type { Surroundings } from '../faults/passing-faults.ts';
import type { Entry, Ledger } from '../lab/ledger/ledger.ts';
import type { Stage } from '../lab/stage/stage.ts';
import { startOtlpReceiver } from '../stage/otlp-receiver.ts';
import { createPipe } from '../stage/pipe.ts';
import { addressOf } from '../stage/proxy.ts';
import { watch, watchable } from './watched-host.ts';

/** Starts the service with all that may break around it: telemetry is on, and the keys are fetched every five seconds. */
export async function surround(stage: Stage) {
  const { file, flags, variables, runBy, remove } = await watchable();
  const [proxy, collector] = await Promise.all([stage.startProxy(), startOtlpReceiver()]);
  const pipe = createPipe();
  for (const undo of [collector.stop, () => pipe.remove(), remove]) stage.defer(undo);
  const logReader = { isStalled: false };
  const reading = setInterval(() => logReader.isStalled || pipe.read(), 50);
  stage.defer(() => clearInterval(reading));
  const telemetry = {
    SVC_OTEL_ENABLED: 'true',
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.endpoint,
    OTEL_TRACES_SAMPLER: 'traceidratio',
    OTEL_TRACES_SAMPLER_ARG: '0.1',
    OTEL_METRICS_EXPORTER: 'otlp',
    OTEL_METRIC_EXPORT_INTERVAL: '10000',
  };
  const settings = { ...addressOf(proxy), ...telemetry, ...variables, SVC_OAUTH_JWKS_REFRESH: '5' };
  const service = await stage.startService(settings, { output: pipe, runBy });
  const settled = watch(service, file);
  let thinned = 0;
  const keepTidy = () => {
    thinned = thin(service.ledger, thinned, stage.claim);
    collector.received.length = 0;
  };
  const random = stage.random.branch();
  const surroundings: Surroundings = { ...stage, service, proxy, collector, logReader, random };
  return { service, surroundings, settled, flags, keepTidy };
}

/**
 * Forgets of answers what no judge looks at, since there are some hundred thousand of them in an hour: headers of
 * successes, and lists, which have been looked at by then. Begins at entry number `from`, and gives where to go on.
 */
function thin({ entries }: Ledger, from: number, claim: (what: string, holds: boolean) => void): number {
  let at = from;
  for (let entry = entries[at]; entry && isOver(entry); entry = entries[at]) {
    at += 1;
    if (entry.status < 200 || entry.status >= 300) continue;
    const { etag, 'idempotency-replayed': replayed } = entry.responseHeaders;
    entry.responseHeaders = { etag, 'idempotency-replayed': replayed };
    if (!entry.userId?.startsWith('?')) continue;
    claim(`${entry.path} is a list`, entry.body.startsWith('[') && entry.body.endsWith(']'));
    entry.body = '';
  }
  return at;
}

const isOver = ({ status, isLost }: Entry): boolean => status !== 0 || isLost;
