import { AsyncResource } from 'node:async_hooks';
import type { EventFields, EventLog } from './event-log.ts';

const PERIOD_MS = 1000;

/** An event that may occur often. It is logged once a second at most for each key, with the `count` since its last line. */
export class FrequentEvent {
  readonly #write: (fields: EventFields) => void;
  /** Number of occurrences that are not logged yet, for each key whose last line is recent. */
  readonly #unlogged = new Map<string, number>();

  /** A line belongs to no request. */
  constructor(log: EventLog | undefined, event: string) {
    this.#write = AsyncResource.bind((fields) => log?.warning(event, fields));
  }

  add(fields: EventFields, key = ''): void {
    const unlogged = this.#unlogged.get(key);
    if (unlogged === undefined) this.#log(fields, key, 1);
    else this.#unlogged.set(key, unlogged + 1);
  }

  #log(fields: EventFields, key: string, count: number): void {
    this.#write({ ...fields, count });
    this.#unlogged.set(key, 0);
    const onPeriodEnd = () => {
      const unlogged = this.#unlogged.get(key) ?? 0;
      this.#unlogged.delete(key);
      if (unlogged > 0) this.#log(fields, key, unlogged);
    };
    setTimeout(onPeriodEnd, PERIOD_MS).unref();
  }
}
