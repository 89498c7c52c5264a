import type { Route } from '../../lib/endpoint/route.ts';
import type { GatewayEvent } from '../../lib/http/gateway.ts';
import type { EventLog } from '../../lib/observability/event-log.ts';
import type { Database } from '../../lib/postgres/index.ts';
import type { RequestsInFlight } from '../requests-in-flight.ts';
import { AcceptQueue } from './accept-queue.ts';
import { Admission } from './admission.ts';
import { RefusalCounts } from './refusals.ts';

type AdmissionsOptions = {
  readonly database: Pick<Database, 'isCrowded'>;
  readonly inFlight: Pick<RequestsInFlight, 'servedCount' | 'isDraining'>;
  readonly log: Pick<EventLog, 'warning'>;
};

/**
 * The admissions of one instance: one for memory-intensive requests, and one for all others, which waits for shared
 * sessions of PostgreSQL only. Otherwise 200 creates with a key that wait for a lock would stop all reads.
 */
export class Admissions {
  readonly refusals: RefusalCounts;
  readonly acceptQueue = new AcceptQueue();
  readonly #memoryIntensive: Admission;
  readonly #others: Admission;

  constructor({ database, inFlight, log }: AdmissionsOptions) {
    this.refusals = new RefusalCounts(log);
    const options = { inFlight, refusals: this.refusals, acceptQueue: this.acceptQueue };
    this.#others = new Admission({ ...options, isCrowded: () => database.isCrowded('shared') });
    const isCrowded = () => database.isCrowded('own-session');
    this.#memoryIntensive = new Admission({ ...options, isCrowded, others: this.#others });
  }

  /** The admission of a request, which has no route if its path has none. */
  of(
    route: Pick<Route, 'isMemoryIntensive'> | undefined,
    request: Pick<GatewayEvent, 'rawQueryString'>,
  ): Admission {
    return route?.isMemoryIntensive?.(request) ? this.#memoryIntensive : this.#others;
  }

  /** Reads every paused connection. Must be called when the drain begins, which must know all requests that were sent. */
  resumeAll(): void {
    this.#memoryIntensive.resumeAll();
    this.#others.resumeAll();
  }
}
