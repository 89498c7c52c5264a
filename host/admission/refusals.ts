import type { GatewayEvent, GatewayResult } from '../../lib/http/gateway.ts';
import { chooseRequestId } from '../../lib/http/middleware/request-id.ts';
import { problemDocument, problemHeaders, unavailable } from '../../lib/http/problem.ts';
import type { EventLog } from '../../lib/observability/event-log.ts';
import type { Readings } from '../../lib/observability/metrics.ts';
import type { Settings } from '../../lib/settings/settings.ts';

/** Why a request was refused, as the metric names it. */
export type RefusalReason = keyof Readings['requestsRefused'];

/** Share of the process's time. */
const SHARE = 0.2;

/** Maximum saving or debt, in milliseconds. */
const MAX_BALANCE_MS = 20;

/** Factor for receiving and parsing the request, which takes half of the measured 40 microseconds. */
const WITH_RECEIVING = 2;

/** Cost before the first refusal. */
const FIRST_COST_MS = 0.04;

/** Weight of the latest refusal in the average cost. */
const WEIGHT = 1 / 16;

/**
 * Limits the cost of refusals to a share of the process's time. At ten times the capacity they would take all of it.
 * `now` is a clock in milliseconds.
 */
export class RefusalBudget {
  readonly #now: () => number;
  #balance = MAX_BALANCE_MS;
  #balanceAt: number;
  #cost = FIRST_COST_MS;

  constructor(now = () => performance.now()) {
    this.#now = now;
    this.#balanceAt = now();
  }

  /** Number of further refusals that can be paid for now; below 1 if none can. */
  affordable(): number {
    const at = this.#now();
    this.#balance = Math.min(this.#balance + (at - this.#balanceAt) * SHARE, MAX_BALANCE_MS);
    this.#balanceAt = at;
    return this.#balance / this.#cost;
  }

  /** Refuses a request and pays for it in any case. A debt is paid off first. */
  pay(request: { refuse(): void }): void {
    const begun = this.#now();
    request.refuse();
    // The time may include a garbage collection.
    const spent = Math.min((this.#now() - begun) * WITH_RECEIVING, MAX_BALANCE_MS);
    this.#balance = Math.max(this.#balance - spent, -MAX_BALANCE_MS);
    this.#cost += (spent - this.#cost) * WEIGHT;
  }
}

/** Interval of the log. */
const LOG_PERIOD_MS = 1000;

/** Counts the refusals of one instance by reason, and logs them once a second. */
export class RefusalCounts {
  readonly byReason = {
    no_room: 0,
    waited_too_long: 0,
    caller_left: 0,
  } satisfies Readings['requestsRefused'];
  readonly #log: Pick<EventLog, 'warning'>;
  #unreported = 0;
  #timer: NodeJS.Timeout | undefined;

  constructor(log: Pick<EventLog, 'warning'>) {
    this.#log = log;
  }

  add(reason: RefusalReason): void {
    this.byReason[reason] += 1;
    this.#unreported += 1;
    this.#timer ??= setTimeout(() => this.flush(), LOG_PERIOD_MS).unref();
  }

  /** Logs the refusals that have not been logged yet. */
  flush(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#unreported > 0) this.#log.warning('requests_refused', { count: this.#unreported });
    this.#unreported = 0;
  }
}

/** The response of an overloaded instance: a complete problem document, with very little work. */
export class OverloadResponse {
  readonly #problem = unavailable('the instance is overloaded');
  readonly #headers = { ...problemHeaders(this.#problem), 'X-Content-Type-Options': 'nosniff' };
  readonly #requestIdHeader: string;
  readonly #requestIdName: string;

  constructor({ requestIdHeader }: Pick<Settings, 'requestIdHeader'>) {
    this.#requestIdHeader = requestIdHeader;
    this.#requestIdName = requestIdHeader.toLowerCase();
  }

  to({ rawPath, headers }: Pick<GatewayEvent, 'rawPath' | 'headers'>): GatewayResult {
    return {
      statusCode: this.#problem.status,
      headers: { ...this.#headers, [this.#requestIdHeader]: chooseRequestId(headers[this.#requestIdName]) },
      body: JSON.stringify(problemDocument(this.#problem, rawPath)),
      isBase64Encoded: false,
    };
  }
}
