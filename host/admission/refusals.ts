import type { GatewayEvent, GatewayResult } from '../../lib/http/gateway.ts';
import { problemDocument, problemHeaders, unavailable } from '../../lib/http/problem.ts';
import { chooseRequestId } from '../../lib/http/request-id.ts';
import type { EventLog } from '../../lib/observability/event-log.ts';
import type { Caller } from '../sockets/connections.ts';

export type RefusalReason = keyof ReturnType<typeof zeros>;

const zeros = () => ({ no_room: 0, waited_too_long: 0, caller_left: 0 });

const LOG_PERIOD_MS = 1000;

/** Counts the refusals of one instance, and logs them once a second. */
export class RefusalCounts {
  readonly byCaller = { known: zeros(), unverified: zeros() };
  readonly #log: Pick<EventLog, 'warning'>;
  #unreported = { known: 0, unverified: 0 };
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Pick<EventLog, 'warning'>) {
    this.#log = log;
  }

  add(reason: RefusalReason, caller: Caller): void {
    const kind = caller === undefined ? 'unverified' : 'known';
    this.byCaller[kind][reason] += 1;
    this.#unreported[kind] += 1;
    this.#timer ??= setTimeout(() => this.flush(), LOG_PERIOD_MS).unref();
  }

  /** Logs the refusals that have not been logged yet. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    for (const [caller, count] of Object.entries(this.#unreported))
      if (count > 0) this.#log.warning('requests_refused', { count, caller });
    this.#unreported = { known: 0, unverified: 0 };
  }
}

const OVERLOAD = unavailable('the instance is overloaded');
const HEADERS = { ...problemHeaders(OVERLOAD), 'X-Content-Type-Options': 'nosniff' };

/** The response of an overloaded instance: a complete problem document, with very little work. */
export function createRefusal({ rawPath, headers }: GatewayEvent, requestIdHeader: string): GatewayResult {
  return {
    statusCode: OVERLOAD.status,
    headers: { ...HEADERS, [requestIdHeader]: chooseRequestId(headers[requestIdHeader.toLowerCase()]) },
    body: JSON.stringify(problemDocument(OVERLOAD, rawPath)),
    isBase64Encoded: false,
  };
}
