import type { EventLog } from '../../lib/observability/event-log.ts';
import type { Readings } from '../../lib/observability/metrics.ts';

/** Counts refusals at admission by reason, and logs them once a second. */
export type RefusalCounts = {
  readonly byReason: Readings['requestsRefused'];
  add(reason: keyof Readings['requestsRefused']): void;
  /** Logs the refusals that have not been logged yet. */
  flush(): void;
};

/** In milliseconds. */
const PERIOD = 1000;

/** Creates the counts of one instance. */
export function createRefusalCounts(log: Pick<EventLog, 'warning'>): RefusalCounts {
  const byReason = { no_room: 0, waited_too_long: 0, caller_left: 0 };
  let unreported = 0;
  let timer: NodeJS.Timeout | undefined;

  function flush(): void {
    clearTimeout(timer);
    timer = undefined;
    if (unreported > 0) log.warning('requests_refused', { count: unreported });
    unreported = 0;
  }

  return {
    byReason,
    add(reason) {
      byReason[reason] += 1;
      unreported += 1;
      timer ??= setTimeout(flush, PERIOD).unref();
    },
    flush,
  };
}
